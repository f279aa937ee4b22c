/** Runs calls in a worker thread or process, and sends their results. */

import { addAbortListener, allowManyListeners, removeAbortListener } from '../../base/abort.ts';
import { checkString } from '../../base/arguments.ts';
import { builtin } from '../../base/builtins.ts';
import { isObject, isThenable } from '../../base/thrown-value.ts';
import { clearImmediate, now, setImmediate } from '../../base/timer.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { binding } from '../../native/native.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { runAttempt } from '../../telemetry/spans.ts';
import { checkCloned, refusedValue } from '../../values/lost-values.ts';
import {
  type Movable,
  receivedArguments,
  refusedResult,
  smallCopy,
  toPost,
  transferListOf,
} from '../../values/to-thread.ts';
import { packValue } from '../../values/value.ts';
import {
  type CurrentCall,
  callHasEnded,
  callOfCaller,
  callsAreAsked,
  ownCall,
  runAsCall,
} from './call-store.ts';
import {
  CANCELLED,
  DRAW,
  type DrawMethod,
  ENDED,
  type FromWorker,
  type SentCall,
  type SentResult,
  STATE,
  type ToWorker,
  type WorkerResource,
  type WorkerSettings,
} from './messages.ts';
import {
  type ExportedFunction,
  type Exports,
  functionNames,
  functionOf,
  serveModule,
} from './module.ts';
import { RecentValues } from './recent-values.ts';
import { aboutOf, isTaskTraced, traceRun } from './task-channel.ts';
import type {
  Calling,
  MakeWorkerVariables,
  OperationId,
  SharedVariable,
  VariableValue,
  WorkerVariables,
} from './variables.ts';
import { WorkerResources } from './worker-resources.ts';

export interface Channel {
  post(message: FromWorker, transfer?: readonly Movable[]): void;
  /** The last message: a process exits. */
  end(message: FromWorker): void;
}

// The cancellations that a native thread of a worker process has received (native/binding/
// fork_line.h): by them a function that computes sees its own before the message about it, which
// waits for the event loop.

export class CancelledCalls {
  /** One word: the native thread stores 1 when it has received a cancellation. */
  readonly words: Int32Array = new Int32Array(new SharedArrayBuffer(4));
  /** By the call's id; oldest first. */
  readonly #reasons = new Map<number, Uint8Array>();
  readonly #most: number;

  /**
   * `concurrency`: how many calls the process has at most. While one of them computes, what
   * arrives after its own cancellation is of the others, and of those that the coordinator has sent
   * for others that had ended: less than twice as many. Older cancellations are of ended calls,
   * or the event loop has received their messages.
   */
  constructor(concurrency: number) {
    this.#most = 2 * concurrency;
  }

  has(id: number): boolean {
    if (Atomics.load(this.words, 0) !== 0) this.#take();
    return this.#reasons.has(id);
  }

  /** @returns undefined if the call is not cancelled */
  reasonOf(id: number): { value: unknown } | undefined {
    const reason = this.has(id) ? this.#reasons.get(id) : undefined;
    return reason && decode(reason);
  }

  /**
   * Called when the call has ended. What the native thread has received is taken all the same:
   * it would stay there if no function ever asked.
   */
  forget(id: number): void {
    if (this.has(id)) this.#reasons.delete(id);
  }

  #take(): void {
    Atomics.store(this.words, 0, 0); // before: what comes from now on sets it again
    for (const { id, reason } of binding().takeCancelledCalls()) this.#reasons.set(id, reason);
    for (const id of this.#reasons.keys()) {
      if (this.#reasons.size <= this.#most) break;
      this.#reasons.delete(id);
    }
  }
}

// What a function has reported and its worker has not sent: at once, or, when a message was sent a
// moment ago, together with what is reported meanwhile. So a function that reports without end
// floods nobody: of what comes faster than messages go, the oldest is dropped.

const INTERVAL_MS = 10;
const MOST = 4_096;
const MOST_BYTES = 256 * 1024;

class ProgressOutbox {
  readonly #send: (values: Uint8Array[]) => void;
  readonly #waiting = new RecentValues(MOST, MOST_BYTES);
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (values: Uint8Array[]) => void) {
    this.#send = send;
  }

  add(value: Uint8Array): void {
    this.#waiting.add(value);
    // Tested here too, since the timer of a function that does not yield never fires.
    if (now() - this.#sentAt >= INTERVAL_MS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), INTERVAL_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentAt = now();
    const values = this.#waiting.takeAll();
    if (values.length > 0) this.#send(values);
  }
}

/** The result of a function that ran for less than this waits, to share a message with others. */
const SHORT_US = 50;

class ResultsOutbox {
  readonly #post: Channel['post'];
  /** A process is sent its next call only when it has sent the result of the last. */
  readonly #areAwaited: boolean;
  #results: SentResult[] = [];
  #transfers: Movable[] = [];

  constructor(post: Channel['post'], areAwaited: boolean) {
    this.#post = post;
    this.#areAwaited = areAwaited;
  }

  get isEmpty(): boolean {
    return this.#results.length === 0;
  }

  /**
   * Sends a result: at once, or with the next results if its function took little time.
   *
   * @param isTheirs - whether the value is an object that the function may return again or change.
   *   It never waits for a second result: in one message the two would be one object of two calls
   */
  add(result: SentResult, isTheirs: boolean): void {
    const [, , value, us] = result;
    this.#results.push(result);
    if (isObject(value)) this.#transfers.push(...transferListOf([value]));
    if (isTheirs || this.#areAwaited || us >= SHORT_US) this.flush();
  }

  /** Sends one result, and its id in a message before, for the case that nobody can read it. */
  addAlone(result: SentResult): void {
    this.flush();
    const [id, , , us] = result;
    this.#post({ kind: 'allstop:announcing', id, us });
    this.#postOne(result);
  }

  flush(): void {
    const results = this.#results;
    if (results.length === 0) return;
    const transfers = this.#transfers;
    this.#results = [];
    this.#transfers = [];
    try {
      this.#post({ kind: 'allstop:results', results }, transfers);
    } catch {
      for (const result of results) this.#postOne(result);
    }
  }

  /** If the result cannot be cloned, the function has failed with that error. */
  #postOne(result: SentResult): void {
    const [id, , value, us] = result;
    try {
      this.#post({ kind: 'allstop:results', results: [result] }, transferListOf([value]));
    } catch (error) {
      const record = encode(refusedResult(error, value, structuredClone)).bytes;
      this.#post({ kind: 'allstop:results', results: [[id, STATE.failed, record, us]] });
    }
  }
}

/** The id of an attempt that is no call's: of a resource, of setup and teardown. */
const NO_CALL = -1;

/** One execution of a call; `currentCall()` returns it. */
class Attempt implements CurrentCall {
  readonly id: number;
  readonly attempt: number;
  /** Its result is kept. */
  readonly isKeyed: boolean;
  readonly #runner: FunctionRunner;
  /** The index of the call's claim. */
  readonly #claim: number | undefined;
  #controller: AbortController | undefined;
  #leaving: AbortController | undefined;
  #reason: { value: unknown } | undefined;
  #progress: ProgressOutbox | undefined;
  /** Ends the listening to the coordinator's signal, which lives longer. */
  #unlisten: (() => void) | undefined;
  #hasEnded = false;
  /** By the variable's name: how many `assignAdd`s this attempt has made. */
  #additions: Map<string, number> | undefined;

  constructor(runner: FunctionRunner, id = NO_CALL, attempt = 1, claim?: number, isKeyed = false) {
    this.isKeyed = isKeyed;
    this.#claim = claim;
    this.#runner = runner;
    this.id = id;
    this.attempt = attempt;
  }

  get workerIndex(): number {
    return this.#runner.index;
  }

  get signal(): AbortSignal {
    const early = this.#hasEnded ? undefined : this.#runner.cancelled?.reasonOf(this.id);
    if (early !== undefined) this.abort(early.value);
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      allowManyListeners(this.#controller.signal);
      const stop = this.#runner.coordinator.signal;
      if (this.#reason !== undefined) this.#controller.abort(this.#reason.value);
      else if (stop.aborted) this.#controller.abort(stop.reason);
      else if (!this.#hasEnded) {
        const onStop = (): void => this.abort(stop.reason);
        addAbortListener(stop, onStop);
        this.#unlisten = () => removeAbortListener(stop, onStop);
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

  // Methods may be taken off the object: `const { report } = currentCall()`. They are not bound, as
  // that would cost each attempt three functions that few use.

  shouldStop(this: Attempt | undefined): boolean {
    if (this === undefined) return ownCall().shouldStop();
    return (
      this.#reason !== undefined ||
      (!this.#hasEnded && this.#runner.isCancelled(this.id, this.#claim)) ||
      this.#runner.coordinator.shouldStop()
    );
  }

  variable<T extends VariableValue>(this: Attempt | undefined, name: string): SharedVariable<T> {
    if (this === undefined) return ownCall().variable(name);
    checkString('name', name);
    return this.#runner.variables.find(name) as SharedVariable as SharedVariable<T>;
  }

  /**
   * The id of this call's next `assignAdd` on a variable.
   *
   * @throws FailedPreconditionError: the function has ended, so its ids are forgotten
   */
  nextAddition(name: string): OperationId | undefined {
    if (this.id === NO_CALL) return undefined;
    if (this.#hasEnded) {
      throw new FailedPreconditionError(
        `assignAdd() on the variable '${name}' was called after its function had ended: await it in the function`,
      );
    }
    this.#additions ??= new Map();
    const ordinal = (this.#additions.get(name) ?? 0) + 1;
    this.#additions.set(name, ordinal);
    return { call: this.id, ordinal };
  }

  report(this: Attempt | undefined, value: unknown): void {
    if (this === undefined) return ownCall().report(value);
    let bytes: Uint8Array;
    try {
      bytes = packValue(value);
    } catch (error) {
      throw refusedValue(error, 'Reported progress', { path: 'value', value }, packValue);
    }
    if (this.#hasEnded || this.id === NO_CALL) return;
    this.#progress ??= new ProgressOutbox((values) => this.#runner.sendProgress(this.id, values));
    this.#progress.add(new Uint8Array(bytes)); // `bytes` may be a view of a longer buffer
  }

  abort(reason: unknown): void {
    this.#reason ??= { value: reason };
    this.#controller?.abort(reason);
  }

  /** Ends the attempt. */
  release(): void {
    this.#hasEnded = true;
    callHasEnded(this);
    this.#runner.cancelled?.forget(this.id);
    this.#progress?.flush(); // before the result
    this.#unlisten?.();
  }
}

/** A call that runs: what its end has to know. */
type Run = {
  readonly attempt: Attempt;
  readonly claim: number;
  readonly name: string;
  /** When it began (now()). */
  readonly began: number;
  /** The arguments were bytes, and so has to be the result. */
  readonly isPacked: boolean;
  /** Whether the result is an object that the function may return again or change. */
  isTheirs: boolean;
};

/** What is done in the order in which it was sent. */
type Task = SentCall | Extract<ToWorker, { kind: 'prepare' } | { kind: 'end' }>;

const isCall = (task: Task): task is SentCall => Array.isArray(task);

export class FunctionRunner {
  readonly coordinator: Coordinator;
  /** In a process only. */
  readonly cancelled: CancelledCalls | undefined;
  readonly index: number;
  readonly variables: WorkerVariables;
  readonly #channel: Channel;
  readonly #settings: WorkerSettings;
  readonly #words: Int32Array | undefined;
  readonly #concurrency: number;
  readonly #resources: WorkerResources;
  readonly #results: ResultsOutbox;
  readonly #draw: ExportedFunction = (id, method, value) =>
    this.#resources.draw(id as number, method as DrawMethod, value);
  #exports: Exports = {};
  /** Whether `leave` was called. */
  isLeaving = false;
  /** What was sent and has not begun: from `#next` on. */
  #inbox: Task[] = [];
  #next = 0;
  /** The worker reports when its heap is larger. */
  #heapBytes: number | undefined;
  /** Those of asynchronous functions that have begun and not ended, by the call's id. */
  readonly #attempts = new Map<number, Attempt>();
  /** When the last function ended (now()). */
  #endedAt = 0;
  /** Microseconds that each function took last, by name. */
  readonly #durations = new Map<string, number>();

  constructor(
    channel: Channel,
    coordinator: Coordinator,
    settings: WorkerSettings,
    makeVariables: MakeWorkerVariables,
    cancelled?: CancelledCalls,
  ) {
    this.cancelled = cancelled;
    const { index, words, concurrency, heapMb } = settings;
    this.#heapBytes = heapMb === undefined ? undefined : heapMb * 1024 ** 2;
    this.#concurrency = concurrency;
    if (concurrency > 1) callsAreAsked(); // they overlap
    this.#channel = channel;
    this.coordinator = coordinator;
    this.#settings = settings;
    this.index = index;
    this.#words = words;
    this.#results = new ResultsOutbox(channel.post, words === undefined);
    this.#resources = new WorkerResources(
      { build: (resource) => this.#build(resource), asCall: (body) => this.#asCall(body) },
      (id, request) => channel.post({ kind: 'allstop:draw', id, request }),
    );
    const caller = (): Attempt | undefined => {
      const task = callOfCaller();
      return task instanceof Attempt ? task : undefined;
    };
    const calling: Calling = {
      id: () => caller()?.id ?? NO_CALL,
      attempt: () => caller()?.attempt ?? 0,
      nextId: (name) => caller()?.nextAddition(name),
      isKeyed: () => caller()?.isKeyed === true,
    };
    this.variables = makeVariables(settings, calling, (id, request) =>
      channel.post({ kind: 'allstop:operate', id, request }),
    );
  }

  /** Imports the module, and calls its setup function if the settings name one. */
  async load(): Promise<void> {
    const { module, setup, teardown } = this.#settings;
    // An exit that an error of a listener breaks off leaves a process in which Node runs no
    // `process.nextTick`: what comes later would never end. So the exit is repeated. (Not on Deno,
    // where a worker that has an immediate left never exits.)
    process.on('exit', () => {
      this.#results.flush(); // else the functions that have ended would run again
      if (process.versions['deno'] === undefined) setImmediate(() => process.exit());
    });
    const fail = (error: unknown, isWhole: boolean): void =>
      this.#channel.post({ kind: 'allstop:failed', error: encode(error).bytes, isWhole });
    let isRefused = false;
    serveModule(module, (error) => {
      if (!isRefused) fail(error, true);
      isRefused = true;
    });
    try {
      this.#exports = await import(/* webpackIgnore: true */ /* @vite-ignore */ module);
    } catch (error) {
      if (!isRefused) fail(error, false);
      return;
    }
    try {
      if (teardown !== undefined) this.#function(teardown); // found at the start, not at the end
      if (setup !== undefined) {
        this.#channel.post({ kind: 'allstop:settingUp' });
        await this.#callHook(setup);
      }
    } catch (error) {
      this.#channel.post({ kind: 'allstop:setupFailed', error: encode(error).bytes });
      return;
    }
    this.#channel.post({ kind: 'allstop:ready', functions: functionNames(this.#exports) });
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
   * Whether the call is cancelled: its claim says so in a thread, a native thread in a process.
   * (Both see it before they receive the cancel message.)
   */
  isCancelled(id: number, claim: number | undefined): boolean {
    if (this.cancelled !== undefined) return this.cancelled.has(id);
    if (this.#words === undefined || claim === undefined) return false;
    return Atomics.load(this.#words, claim) === CANCELLED;
  }

  sendProgress(id: number, values: readonly Uint8Array[]): void {
    this.#channel.post({ kind: 'allstop:progress', id, values });
  }

  receive(message: ToWorker): void {
    switch (message.kind) {
      case 'run':
        this.#inbox.push(...message.calls);
        return this.#advance();
      case 'prepare':
      case 'end':
        this.#inbox.push(message);
        return this.#advance();
      case 'cancel':
        return this.#attempts.get(message.id)?.abort(decode(message.reason).value);
      case 'forget':
        return this.#resources.forget(message.id);
      case 'leave':
        return this.leave();
      case 'ping':
        return this.#channel.post({ kind: 'allstop:pong' });
      case 'drawn':
        return this.#resources.shared.answered(message.id, message.state, message.bytes);
      case 'define':
        this.variables.define(...message.definitions);
        return;
      case 'answer':
        this.variables.answered(message.id, message.answer);
        return;
      case 'stop':
      case 'written': // heard before
    }
  }

  /**
   * Does what was sent, in order, until as many asynchronous functions run as may run at once. A call
   * that waits here can be recalled.
   */
  #advance(): void {
    let began = now();
    for (;;) {
      const task = this.#inbox[this.#next];
      if (task === undefined) break;
      const isFull = this.#attempts.size >= this.#concurrency;
      if (isFull && (isCall(task) || this.#concurrency === 1)) return;
      this.#next += 1;
      if (isCall(task)) {
        this.#begin(task, began);
        began = Math.max(began, this.#endedAt);
      } else if (task.kind === 'prepare') void this.#prepare(task.resource);
      else void this.#endWorker(task.letsGo);
    }
    this.#inbox = [];
    this.#next = 0;
    this.#results.flush();
  }

  #begin(call: SentCall, began: number): void {
    const [id, claim, number, name, sent, perWorker, hasVariables, tellsStart, isKeyed, context] =
      call;
    const words = this.#words;
    if (words !== undefined && Atomics.compareExchange(words, claim, id, -id) !== id) return;
    // Unless this function is known to be short, send the finished results before running it.
    if (!this.#results.isEmpty && !((this.#durations.get(name) ?? Infinity) < SHORT_US)) {
      this.#results.flush();
    }
    if (tellsStart) this.#channel.post({ kind: 'allstop:begun', id });
    const attempt = new Attempt(this, id, number, claim, isKeyed);
    const isPacked = sent instanceof Uint8Array;
    const run: Run = { attempt, claim, name, began, isPacked, isTheirs: false };
    let value: unknown;
    try {
      const args = receivedArguments(sent);
      // A variable asks, and so may the functions of a data set.
      if (hasVariables || perWorker !== undefined) callsAreAsked();
      if (hasVariables) this.variables.revive(args);
      value =
        perWorker === undefined
          ? this.#call(run, args, context)
          : this.#resources
              .withOwnValues(args, perWorker)
              .then((own) => this.#call(run, own, context));
      if (isThenable(value)) {
        void this.#endLater(run, value);
        return;
      }
      value = this.#toSend(run, value);
    } catch (error) {
      this.#end(run, STATE.failed, encode(error).bytes);
      return;
    }
    this.#end(run, STATE.ready, value);
  }

  /** Calls the function, with the observers that there are. */
  #call({ attempt, name }: Run, args: readonly unknown[], context: string | undefined): unknown {
    const fn = this.#function(name);
    const asCall = (): unknown => runAsCall(attempt, () => fn(...args));
    const isTraced = name !== DRAW && isTaskTraced();
    if (!isTraced && context === undefined) return asCall();
    const { id: call, attempt: number, workerIndex } = attempt;
    const about = { ...aboutOf(this.coordinator), name, call, attempt: number, workerIndex };
    const traced = (): unknown =>
      isTraced ? traceRun({ ...about, side: 'worker' }, asCall) : asCall();
    if (context === undefined) return traced();
    const attributes = {
      'allstop.coordinator': about.coordinator,
      'allstop.call': call,
      'allstop.attempt': number,
      'allstop.worker': workerIndex,
    };
    return runAttempt(name, context, attributes, traced);
  }

  async #endLater(run: Run, promise: PromiseLike<unknown>): Promise<void> {
    const { attempt } = run;
    this.#attempts.set(attempt.id, attempt);
    // A promise may take long, even if the function's last promise was quick: while this call is
    // awaited, the results of calls that have ended are sent.
    const late = this.#results.isEmpty ? undefined : setImmediate(() => this.#results.flush());
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
    this.#advance();
  }

  /** The result as it goes into a message. @throws DataCloneError, RangeError */
  #toSend(run: Run, value: unknown): unknown {
    if (run.isPacked) return this.#pack(value);
    if (!isObject(value)) return value;
    const copy = transferListOf([value]).length > 0 ? undefined : smallCopy([value]);
    run.isTheirs = copy === undefined;
    if (copy !== undefined) return copy.values[0];
    try {
      checkCloned(value);
    } catch (error) {
      throw refusedResult(error, value, checkCloned);
    }
    return value;
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

  #end({ attempt, claim, name, began, isTheirs }: Run, state: number, value: unknown): void {
    if (this.#words !== undefined) Atomics.store(this.#words, claim, ENDED);
    attempt.release();
    this.#endedAt = now();
    const us = Math.round((this.#endedAt - began) * 1_000);
    this.#durations.set(name, us);
    if (this.#heapBytes !== undefined) this.#checkHeap(this.#heapBytes);
    // The previous attempt may have failed because the coordinator could not read its result.
    if (attempt.attempt > 1) this.#results.addAlone([attempt.id, state, value, us]);
    else this.#results.add([attempt.id, state, value, us], isTheirs);
  }

  /** Reports before the result is sent: with the result, the next function would come here. */
  #checkHeap(most: number): void {
    if (builtin('node:v8').getHeapStatistics().used_heap_size <= most) return;
    this.#heapBytes = undefined; // reported once
    this.#channel.post({ kind: 'allstop:heapFull' });
  }

  /** @throws TypeError: the module exports no function of this name */
  #function(name: string): ExportedFunction {
    if (name === DRAW) return this.#draw;
    return functionOf(this.#exports, name);
  }

  /** Calls a setup or teardown function, where `currentCall()` works as in any other. */
  async #callHook(name: string): Promise<void> {
    const run = this.#function(name);
    const attempt = new Attempt(this);
    try {
      await runAsCall(attempt, () => run({ workerIndex: this.index }));
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
    const error = failures.length === 0 ? undefined : encode(failures[0]).bytes;
    this.#channel.end({ kind: 'allstop:ending', error });
  }

  async #prepare(resource: WorkerResource): Promise<void> {
    callsAreAsked(); // it overlaps with functions
    await this.#resources.prepare(resource);
    this.#channel.post({ kind: 'allstop:prepared', id: resource.id });
  }

  #asCall<T>(body: () => T): T {
    return runAsCall(new Attempt(this), body);
  }

  #build(resource: Extract<WorkerResource, { kind: 'dataset' }>): unknown {
    const build = this.#function(resource.name);
    const args = receivedArguments(resource.args);
    if (resource.hasVariables) this.variables.revive(args);
    return this.#asCall(() => build(...args));
  }
}
