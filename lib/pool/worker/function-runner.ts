/** Runs closures in a worker thread or process, and sends their results. */

import { getHeapStatistics } from 'node:v8';
import {
  addAbortListener,
  allowManyListeners,
  removeAbortListener,
} from '../../base/abort-listeners.ts';
import { checkString } from '../../base/arguments.ts';
import { refusedValue } from '../../base/refused-values.ts';
import { isObject, isThenable } from '../../base/thrown-value.ts';
import type { OperationId } from '../../cluster/variables/native-operations.ts';
import {
  type Definition,
  revive,
  type Variable,
  type VariableValue,
} from '../../cluster/variables/variable.ts';
import type { Answer, Request } from '../../cluster/variables/variable-store.ts';
import {
  type CallingClosure,
  RemoteVariables,
  threadVariables,
  type WorkerVariables,
} from '../../cluster/variables/worker-variables.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { runAttempt } from '../../telemetry/spans.ts';
import { receivedArguments } from '../../values/packed-arguments.ts';
import type { PassedArguments } from '../../values/passed-arguments.ts';
import { smallCopy } from '../../values/small-copy.ts';
import { packValue } from '../../values/value.ts';
import {
  type CurrentCall,
  callHasEnded,
  callOfCaller,
  callsAreAsked,
  runAsCall,
} from './call-store.ts';
import type { CancelledCalls } from './cancelled-calls.ts';

import {
  type ExportedFunction,
  type Exports,
  functionNames,
  functionOf,
} from './module/exported.ts';
import { serveModule } from './module/own-module.ts';
import { ProgressOutbox } from './progress-outbox.ts';
import type { DrawMethod, WorkerResource } from './protocol.ts';
import {
  CANCELLED,
  DRAW,
  ENDED,
  FROM_WORKER,
  RESULT_LENGTH,
  RUN,
  RUN_LENGTH,
  STATE,
  TO_WORKER,
  type WorkerSettings,
} from './protocol.ts';
import { SharedIterators } from './resources/shared-iterators.ts';
import { type ResourceMaker, WorkerResources } from './resources/worker-resources.ts';
import {
  aboutOf,
  isTaskTraced,
  spanAttributes,
  type TaskMessage,
  traceRun,
} from './task-channel.ts';
import { type Movable, refusedResult, toPost, transferListOf } from './transfer.ts';

export interface Channel {
  post(message: unknown[], transfer?: readonly Movable[]): void;
  /** The last message: a process exits. */
  end(message: unknown[]): void;
}

/** The id of an attempt that is no closure's: of a resource, of setup and teardown. */
const NO_CLOSURE = -1;
/** The result of a function that ran for less than this waits, to share a message with others. */
const SHORT_US = 50;

/** One execution of a closure; `currentCall()` returns it. */
class Attempt implements CurrentCall {
  readonly id: number;
  readonly attempt: number;
  readonly workerIndex: number;
  /** Its result is kept. */
  readonly isKeyed: boolean;
  readonly #runner: FunctionRunner;
  /** The index of the closure's claim. */
  readonly #claim: number | undefined;
  #controller: AbortController | undefined;
  #leaving: AbortController | undefined;
  #reason: { value: unknown } | undefined;
  #progress: ProgressOutbox | undefined;
  /** The coordinator's signal, if this attempt listens to it. */
  #stop: AbortSignal | undefined;
  #hasEnded = false;
  /** By the variable's name: how many `assignAdd`s this attempt has made. */
  #additions: Map<string, number> | undefined;
  readonly #onStop = (): void => this.abort(this.#stop?.reason);

  constructor(
    runner: FunctionRunner,
    id: number,
    attempt: number,
    workerIndex: number,
    claim?: number,
    isKeyed = false,
  ) {
    this.isKeyed = isKeyed;
    this.#claim = claim;
    this.#runner = runner;
    this.id = id;
    this.attempt = attempt;
    this.workerIndex = workerIndex;
  }

  get signal(): AbortSignal {
    const early = this.#hasEnded ? undefined : this.#runner.cancelled?.reasonOf(this.id);
    if (early !== undefined) this.abort(early.value);
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      allowManyListeners(this.#controller.signal);
      const { coordinator } = this.#runner;
      if (this.#reason !== undefined) this.#controller.abort(this.#reason.value);
      else if (coordinator.signal.aborted) this.#controller.abort(coordinator.signal.reason);
      else if (!this.#hasEnded) {
        this.#stop = coordinator.signal;
        addAbortListener(this.#stop, this.#onStop);
      }
    }
    return this.#controller.signal;
  }

  get leaving(): AbortSignal {
    if (this.#leaving === undefined) {
      this.#leaving = new AbortController();
      allowManyListeners(this.#leaving.signal);
      if (this.#runner.isLeaving) this.leave();
    }
    return this.#leaving.signal;
  }

  /** The worker was asked to end. */
  leave(): void {
    if (!this.#hasEnded) this.#leaving?.abort();
  }

  shouldStop(): boolean {
    return (
      this.#reason !== undefined ||
      (!this.#hasEnded && this.#runner.isCancelled(this.id, this.#claim)) ||
      this.#runner.coordinator.shouldStop()
    );
  }

  variable<T extends VariableValue>(name: string): Variable<T> {
    checkString('name', name);
    return this.#runner.variables.find(name) as Variable as Variable<T>;
  }

  /**
   * The id of this closure's next `assignAdd` on a variable.
   *
   * @throws FailedPreconditionError: the function has ended, so its ids are forgotten
   */
  nextAddition(name: string): OperationId | undefined {
    if (this.id === NO_CLOSURE) return undefined;
    if (this.#hasEnded) {
      throw new FailedPreconditionError(
        `assignAdd() on the variable '${name}' was called after its function had ended: await it in the function`,
      );
    }
    this.#additions ??= new Map();
    const ordinal = (this.#additions.get(name) ?? 0) + 1;
    this.#additions.set(name, ordinal);
    return { closure: this.id, ordinal };
  }

  report(value: unknown): void {
    let bytes: Uint8Array;
    try {
      bytes = packValue(value);
    } catch (error) {
      throw refusedValue(error, 'Reported progress', { path: 'value', value }, packValue);
    }
    if (this.#hasEnded || this.id === NO_CLOSURE) return;
    this.#progress ??= new ProgressOutbox((values) => this.#runner.sendProgress(this.id, values));
    this.#progress.add(new Uint8Array(bytes)); // `bytes` may be a view of a longer buffer
  }

  abort(reason: unknown): void {
    this.#reason ??= { value: reason };
    this.#controller?.abort(reason);
  }

  /** Ends the attempt: the coordinator's signal, which lives longer, must not refer to it. */
  release(): void {
    this.#hasEnded = true;
    callHasEnded(this);
    this.#runner.cancelled?.forget(this.id);
    this.#progress?.flush(); // before the result
    if (this.#stop !== undefined) removeAbortListener(this.#stop, this.#onStop);
  }
}

/** A closure that runs. */
type Run = {
  readonly attempt: Attempt;
  readonly claim: number;
  readonly name: string;
  /** When it began (performance.now()). */
  readonly began: number;
  /** The arguments were bytes, and so has to be the result. */
  readonly isPacked: boolean;
  /** Whether the result is an object that the function may return again or change. */
  isTheirs: boolean;
};

export class FunctionRunner {
  readonly coordinator: Coordinator;
  /** In a process only. */
  readonly cancelled: CancelledCalls | undefined;
  readonly #channel: Channel;
  readonly #settings: WorkerSettings;
  readonly #index: number;
  readonly #words: Int32Array | undefined;
  readonly variables: WorkerVariables;
  #exports: Exports = {};
  readonly #shared: SharedIterators;
  readonly #resources: WorkerResources;
  readonly #draw: ExportedFunction = (id, method, value) =>
    this.#resources.draw(id as number, method as DrawMethod, value);
  /** Whether `leave` was called. */
  isLeaving = false;
  readonly #inbox: unknown[][] = [];
  #isWorking = false;
  readonly #concurrency: number;
  /** The worker reports when its heap is larger. */
  #heapBytes: number | undefined;
  /** Those of asynchronous functions that have begun and not ended, by the closure's id. */
  readonly #attempts = new Map<number, Attempt>();
  /** Called when one of them has ended. */
  #onRoom: (() => void) | undefined;
  /** When the last function ended (performance.now()). */
  #endedAt = 0;
  /** Results that were not sent yet. */
  #results: unknown[] = [];
  #transfers: Movable[] = [];
  /** Microseconds that each function took last, by name. */
  readonly #durations = new Map<string, number>();

  constructor(
    channel: Channel,
    coordinator: Coordinator,
    settings: WorkerSettings,
    cancelled?: CancelledCalls,
  ) {
    this.cancelled = cancelled;
    const { index, words, concurrency, heapMb, variables } = settings;
    this.#heapBytes = heapMb === undefined ? undefined : heapMb * 1024 ** 2;
    this.#concurrency = concurrency;
    if (concurrency > 1) callsAreAsked(); // they overlap
    this.#channel = channel;
    this.coordinator = coordinator;
    this.#settings = settings;
    this.#index = index;
    this.#words = words;
    this.#shared = new SharedIterators((id, request) =>
      channel.post([FROM_WORKER.draw, id, request]),
    );
    const build: ResourceMaker['build'] = (resource) => this.#build(resource);
    const asCall: ResourceMaker['asCall'] = (body) => this.#asCall(body);
    this.#resources = new WorkerResources({ build, asCall }, this.#shared);
    const caller = (): Attempt | undefined => {
      const task = callOfCaller();
      return task instanceof Attempt ? task : undefined;
    };
    const calling: CallingClosure = {
      id: () => caller()?.id ?? NO_CLOSURE,
      attempt: () => caller()?.attempt ?? 0,
      nextId: (name) => caller()?.nextAddition(name),
      isKeyed: () => caller()?.isKeyed === true,
    };
    const post = (id: number, request: Request): void =>
      channel.post([FROM_WORKER.operate, id, ...request]);
    this.variables =
      variables === undefined
        ? new RemoteVariables(post, calling, settings.definitions)
        : threadVariables(variables, calling);
  }

  /** Imports the module, and calls its setup function if the settings name one. */
  async load(): Promise<void> {
    const { module, setup, teardown } = this.#settings;
    // An exit that an error of a listener breaks off leaves a process in which Node runs no
    // `process.nextTick`: what comes later would never end. So the exit is repeated. (Not on Deno,
    // where a worker that has an immediate left never exits.)
    process.on('exit', () => {
      this.#flush(); // else the functions that have ended would run again
      if (process.versions['deno'] === undefined) setImmediate(() => process.exit());
    });
    const fail = (error: unknown, isWhole: boolean): void =>
      this.#channel.post([FROM_WORKER.failed, encode(error).bytes, isWhole]);
    let isRefused = false;
    serveModule(module, (error) => {
      if (!isRefused) fail(error, true);
      isRefused = true;
    });
    try {
      this.#exports = (await import(
        /* webpackIgnore: true */ /* @vite-ignore */ module
      )) as Exports;
    } catch (error) {
      if (!isRefused) fail(error, false);
      return;
    }
    try {
      if (teardown !== undefined) this.#function(teardown); // found at the start, not at the end
      if (setup !== undefined) {
        this.#channel.post([FROM_WORKER.settingUp]);
        await this.#callHook(setup);
      }
    } catch (error) {
      this.#channel.post([FROM_WORKER.setupFailed, encode(error).bytes]);
      return;
    }
    this.#channel.post([FROM_WORKER.ready, functionNames(this.#exports)]);
  }

  /** The worker was asked to end: functions may end early. */
  leave(): void {
    this.isLeaving = true;
    for (const attempt of this.#attempts.values()) attempt.leave();
  }

  /** Whether no asynchronous function runs. (While one that is synchronous runs, nothing asks.) */
  get isIdle(): boolean {
    return this.#attempts.size === 0;
  }

  /**
   * Whether the closure is cancelled: its claim says so in a thread, a native thread in a process.
   * (Both see it before they receive the cancel message.)
   */
  isCancelled(id: number, claim: number | undefined): boolean {
    if (this.cancelled !== undefined) return this.cancelled.has(id);
    if (this.#words === undefined || claim === undefined) return false;
    return Atomics.load(this.#words, claim) === CANCELLED;
  }

  sendProgress(id: number, values: readonly Uint8Array[]): void {
    this.#channel.post([FROM_WORKER.progress, id, ...values]);
  }

  receive(message: unknown[]): void {
    if (message[0] === TO_WORKER.cancel) {
      const [, id, record] = message;
      this.#attempts.get(id as number)?.abort(decode(record as Uint8Array).value);
      return;
    }
    if (message[0] === TO_WORKER.forget) return this.#resources.forget(message[1] as number);
    if (message[0] === TO_WORKER.leave) return this.leave();
    if (message[0] === TO_WORKER.ping) return this.#channel.post([FROM_WORKER.pong]);
    if (message[0] === TO_WORKER.drawn) {
      const [, id, state, bytes] = message as [number, number, number, Uint8Array];
      return this.#shared.answered(id, state, bytes);
    }
    if (this.variables instanceof RemoteVariables) {
      if (message[0] === TO_WORKER.define) {
        return this.variables.define(...(message.slice(1) as Definition[]));
      }
      if (message[0] === TO_WORKER.answer) {
        const [, id, ...answer] = message as [number, number, ...Answer];
        return this.variables.answered(id, answer);
      }
    }
    this.#inbox.push(message);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let message = this.#inbox.shift(); message !== undefined; message = this.#inbox.shift()) {
      if (message[0] === TO_WORKER.prepare)
        void this.#prepare(message[1] as number, message[2] as WorkerResource);
      else if (message[0] === TO_WORKER.end) await this.#endWorker(message[1] === true);
      else await this.#runAll(message);
    }
    this.#flush();
    this.#isWorking = false;
  }

  /** Runs the closures of a message, as many at once as `concurrency` permits. */
  async #runAll(message: unknown[]): Promise<void> {
    let began = performance.now();
    for (let at = 1; at < message.length; at += RUN_LENGTH) {
      if (this.#attempts.size >= this.#concurrency) {
        // A closure that waits here can be recalled.
        await this.#hasRoom();
        began = performance.now();
      }
      const id = message[at] as number;
      const claim = message[at + 1] as number;
      const words = this.#words;
      if (words !== undefined && Atomics.compareExchange(words, claim, id, -id) !== id) continue;
      const name = message[at + 3] as string;
      // Unless this function is known to be short, send the finished results before running it.
      if (this.#results.length > 0 && !((this.#durations.get(name) ?? Infinity) < SHORT_US)) {
        this.#flush();
      }
      const flags = message[at + 6] as number;
      const isKeyed = (flags & RUN.isKeyed) !== 0;
      const attempt = new Attempt(this, id, message[at + 2] as number, this.#index, claim, isKeyed);
      const args = message[at + 4] as PassedArguments;
      const run: Run = {
        attempt,
        claim,
        name,
        began,
        isPacked: args instanceof Uint8Array,
        isTheirs: false,
      };
      const perWorker = message[at + 5] as readonly number[] | undefined;
      const context = message[at + 7] as string | undefined;
      if ((flags & RUN.tellsStart) !== 0) this.#channel.post([FROM_WORKER.begun, id]);
      const hasVariables = (flags & RUN.hasVariables) !== 0;
      const ending = this.#begin(run, args, perWorker, hasVariables, context);
      if (ending !== undefined && this.#concurrency === 1) await ending;
      began = ending === undefined || this.#concurrency === 1 ? this.#endedAt : performance.now();
    }
  }

  /** @returns undefined if the function has ended: it was synchronous */
  #begin(
    run: Run,
    sent: PassedArguments,
    perWorker: readonly number[] | undefined,
    hasVariables: boolean,
    context: string | undefined,
  ): Promise<void> | undefined {
    const { attempt, name } = run;
    let value: unknown;
    try {
      const given = receivedArguments(sent);
      // A variable asks, and so may the functions of a data set.
      if (hasVariables || perWorker !== undefined) callsAreAsked();
      if (hasVariables) revive(given, (own) => this.variables.find(own));
      const call = (args: readonly unknown[]): unknown => {
        const fn = this.#function(name);
        const asTask = (): unknown => runAsCall(attempt, () => fn(...args));
        const traced = (): unknown =>
          isTaskTraced() && name !== DRAW
            ? traceRun(this.#messageOf(attempt, name), asTask)
            : asTask();
        if (context === undefined) return traced();
        return runAttempt(name, context, spanAttributes(this.coordinator, attempt), traced);
      };
      value =
        perWorker === undefined
          ? call(given)
          : this.#resources.withOwnValues(given, perWorker).then(call);
      if (isThenable(value)) return this.#endLater(run, value);
      value = this.#toSend(run, value);
    } catch (error) {
      this.#end(run, STATE.failed, encode(error).bytes);
      return undefined;
    }
    this.#end(run, STATE.ready, value);
    return undefined;
  }

  async #endLater(run: Run, promise: PromiseLike<unknown>): Promise<void> {
    const { attempt } = run;
    this.#attempts.set(attempt.id, attempt);
    // A promise may take long, even if the function's last promise was quick: while this call is
    // awaited, the results of calls that have ended are sent.
    const late = this.#results.length > 0 ? setImmediate(() => this.#flush()) : undefined;
    let state: number = STATE.ready;
    let value: unknown;
    try {
      value = await promise;
      value = this.#toSend(run, value);
    } catch (error) {
      state = STATE.failed;
      value = encode(error).bytes;
    }
    clearImmediate(late);
    this.#attempts.delete(attempt.id);
    this.#end(run, state, value);
    if (this.#concurrency === 1) return;
    this.#flush(); // #work may be waiting, or over
    this.#onRoom?.();
  }

  /** The result as it goes into a message. @throws DataCloneError, RangeError */
  #toSend(run: Run, value: unknown): unknown {
    if (run.isPacked) return this.#pack(value);
    if (!isObject(value)) return value;
    const copy = transferListOf([value]).length > 0 ? undefined : smallCopy([value]);
    run.isTheirs = copy === undefined;
    return copy === undefined ? value : copy.values[0];
  }

  #end({ attempt, claim, name, began, isTheirs }: Run, state: number, value: unknown): void {
    if (this.#words !== undefined) Atomics.store(this.#words, claim, ENDED);
    attempt.release();
    this.#endedAt = performance.now();
    const us = Math.round((this.#endedAt - began) * 1_000);
    this.#durations.set(name, us);
    if (this.#heapBytes !== undefined) this.#checkHeap(this.#heapBytes);
    // The previous attempt may have failed because the coordinator could not read its result.
    if (attempt.attempt > 1) this.#sendAlone(attempt.id, state, value, us);
    else this.#send(attempt.id, state, value, us, isTheirs);
  }

  /** Reports before the result is sent: with the result, the next function would come here. */
  #checkHeap(most: number): void {
    if (getHeapStatistics().used_heap_size <= most) return;
    this.#heapBytes = undefined; // reported once
    this.#channel.post([FROM_WORKER.heapFull]);
  }

  /** Resolves when one more function may begin. Only #work waits for it. */
  async #hasRoom(): Promise<void> {
    while (this.#attempts.size >= this.#concurrency) {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve;
      });
    }
    this.#onRoom = undefined;
  }

  #messageOf({ id, attempt, workerIndex }: Attempt, name: string): TaskMessage {
    return { ...aboutOf(this.coordinator), side: 'worker', name, call: id, attempt, workerIndex };
  }

  /** @throws TypeError: the module exports no function of this name */
  #function(name: string): ExportedFunction {
    if (name === DRAW) return this.#draw;
    return functionOf(this.#exports, name);
  }

  /** Calls a setup or teardown function, where `currentCall()` works as in any other. */
  async #callHook(name: string): Promise<void> {
    const run = this.#function(name);
    const attempt = new Attempt(this, NO_CLOSURE, 1, this.#index);
    try {
      await runAsCall(attempt, () => run({ workerIndex: this.#index }));
    } finally {
      attempt.release();
    }
  }

  async #endWorker(letsGo: boolean): Promise<void> {
    const { teardown } = this.#settings;
    const failures: unknown[] = [];
    const fail = (error: unknown): unknown => failures.push(error);
    if (letsGo) {
      await this.#asCall(() => this.#resources.close()).catch(fail);
      if (teardown !== undefined) await this.#callHook(teardown).catch(fail);
    }
    const failed = failures.length === 0 ? null : encode(failures[0]).bytes;
    this.#channel.end([FROM_WORKER.ending, failed]);
  }

  /** @throws DataCloneError; RangeError: the value is nested too deeply */
  #pack(value: unknown): Uint8Array {
    try {
      const bytes = packValue(value);
      return this.#words === undefined ? bytes : toPost(bytes);
    } catch (error) {
      throw refusedResult(error, value, packValue);
    }
  }

  /**
   * Sends a result: at once, or with the next results if its function took little time.
   *
   * @param isTheirs - whether the value is an object that the function may return again or change.
   *   It never waits for a second result: in one message the two would be one object of two calls
   */
  #send(id: number, state: number, value: unknown, us: number, isTheirs: boolean): void {
    if (this.#words === undefined || us >= SHORT_US) {
      this.#flush();
      this.#results.push(id, state, value, us);
      this.#transfers.push(...transferListOf([value]));
      this.#flush();
    } else {
      this.#results.push(id, state, value, us);
      const list = transferListOf([value]);
      if (list.length > 0) this.#transfers.push(...list);
      if (isTheirs) this.#flush();
    }
  }

  /**
   * Sends one result, and its id in a message before, for the case that the result is unreadable.
   */
  #sendAlone(id: number, state: number, value: unknown, us: number): void {
    this.#flush();
    this.#channel.post([FROM_WORKER.announcing, id, us]);
    this.#postOne([id, state, value, us]);
  }

  #flush(): void {
    const results = this.#results;
    if (results.length === 0) return;
    const transfers = this.#transfers;
    this.#results = [];
    this.#transfers = [];
    try {
      this.#channel.post([FROM_WORKER.results, ...results], transfers);
    } catch {
      for (let at = 0; at < results.length; at += RESULT_LENGTH) {
        this.#postOne(results.slice(at, at + RESULT_LENGTH));
      }
    }
  }

  /** Sends one result; if it cannot be cloned, the function has failed with that error. */
  #postOne([id, state, value, us]: unknown[]): void {
    try {
      const transfers = transferListOf([value]);
      this.#channel.post([FROM_WORKER.results, id, state, value, us], transfers);
    } catch (error) {
      const record = encode(refusedResult(error, value, structuredClone)).bytes;
      this.#channel.post([FROM_WORKER.results, id, STATE.failed, record, us]);
    }
  }

  async #prepare(id: number, resource: WorkerResource): Promise<void> {
    callsAreAsked(); // it overlaps with functions
    await this.#resources.prepare(resource);
    this.#channel.post([FROM_WORKER.prepared, id]);
  }

  #asCall<T>(body: () => T): T {
    return runAsCall(new Attempt(this, NO_CLOSURE, 1, this.#index), body);
  }

  #build(resource: Extract<WorkerResource, { kind: 'dataset' }>): unknown {
    const build = this.#function(resource.name);
    const args = receivedArguments(resource.args);
    if (resource.hasVariables) revive(args, (own) => this.variables.find(own));
    return this.#asCall(() => build(...args));
  }
}
