/** Runs closures in a worker thread or process, and sends their results. */

import { setMaxListeners } from 'node:events';
import type { TransferListItem } from 'node:worker_threads';
import { addAbortListener, removeAbortListener } from '../../base/abort-listeners.ts';
import { isObject, isThenable, messageOf } from '../../base/thrown-value.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { ClosureInputError } from '../../errors/errors.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { type CurrentTask, runAsTask } from './current-task.ts';
import { receivedArguments } from './packed-arguments.ts';
import type { PassedArguments, Resource } from './protocol.ts';
import {
  CANCELLED,
  dataCloneError,
  ENDED,
  FROM_WORKER,
  PASS_A_NAME,
  RESULT_LENGTH,
  RUN_LENGTH,
  STATE,
  TO_WORKER,
  type WorkerSettings,
} from './protocol.ts';
import { smallCopy } from './small-copy.ts';
import { toPost, transferListOf } from './transfer.ts';
import { packValue } from './value.ts';

export interface Channel {
  post(message: unknown[], transfer?: readonly TransferListItem[]): void;
}

type AnyFunction = (...args: unknown[]) => unknown;

/** The id of a resource's attempt. Not 0, which the word CANCELLED holds at first. */
const NO_CLOSURE = -1;
/** The result of a function that ran for less than this waits, to share a message with others. */
const SHORT_US = 50;

/** One execution of a closure; `currentTask()` returns it. */
class Attempt implements CurrentTask {
  readonly id: number;
  readonly attempt: number;
  readonly workerIndex: number;
  readonly #runner: FunctionRunner;
  #controller: AbortController | undefined;
  #reason: { value: unknown } | undefined;
  /** The coordinator's signal, if this attempt listens to it. */
  #stop: AbortSignal | undefined;
  #hasEnded = false;
  readonly #onStop = (): void => this.abort(this.#stop?.reason);

  constructor(runner: FunctionRunner, id: number, attempt: number, workerIndex: number) {
    this.#runner = runner;
    this.id = id;
    this.attempt = attempt;
    this.workerIndex = workerIndex;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      setMaxListeners(0, this.#controller.signal);
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

  shouldStop(): boolean {
    return (
      this.#reason !== undefined ||
      this.#runner.isCancelled(this.id) ||
      this.#runner.coordinator.shouldStop()
    );
  }

  abort(reason: unknown): void {
    this.#reason ??= { value: reason };
    this.#controller?.abort(reason);
  }

  /** Ends the attempt: the coordinator's signal, which lives longer, must not refer to it. */
  release(): void {
    this.#hasEnded = true;
    if (this.#stop !== undefined) removeAbortListener(this.#stop, this.#onStop);
  }
}

export class FunctionRunner {
  readonly coordinator: Coordinator;
  readonly #channel: Channel;
  readonly #index: number;
  readonly #words: Int32Array | undefined;
  #exports: Record<string, unknown> = {};
  /** The resources by id. A function that uses a rejected one fails with its error. */
  readonly #resources = new Map<number, Promise<unknown>>();
  readonly #inbox: unknown[][] = [];
  #isWorking = false;
  #attempt: Attempt | undefined;
  /** Results that were not sent yet. */
  #results: unknown[] = [];
  #transfers: TransferListItem[] = [];
  /** Microseconds that each function took last, by name. */
  readonly #durations = new Map<string, number>();

  constructor(channel: Channel, coordinator: Coordinator, { index, words }: WorkerSettings) {
    this.#channel = channel;
    this.coordinator = coordinator;
    this.#index = index;
    this.#words = words;
  }

  async load(module: string): Promise<void> {
    try {
      this.#exports = (await import(/* webpackIgnore: true */ /* @vite-ignore */ module)) as Record<
        string,
        unknown
      >;
    } catch (error) {
      this.#channel.post([FROM_WORKER.failed, encode(error).bytes]);
      return;
    }
    const names = Object.keys(this.#exports).filter(
      (name) => typeof this.#exports[name] === 'function',
    );
    this.#channel.post([FROM_WORKER.ready, names]);
  }

  /**
   * In a thread: whether the word CANCELLED names the closure. (The thread sees it before it
   * receives the cancel message.) In a process: false.
   */
  isCancelled(id: number): boolean {
    return this.#words !== undefined && Atomics.load(this.#words, CANCELLED) === id;
  }

  receive(message: unknown[]): void {
    if (message[0] === TO_WORKER.cancel) {
      const [, id, record] = message;
      if (this.#attempt?.id === id) this.#attempt?.abort(decode(record as Uint8Array).value);
      return;
    }
    this.#inbox.push(message);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let message = this.#inbox.shift(); message !== undefined; message = this.#inbox.shift()) {
      if (message[0] === TO_WORKER.prepare)
        this.#prepare(message[1] as number, message[2] as Resource);
      else await this.#runAll(message);
    }
    this.#flush();
    this.#isWorking = false;
  }

  async #runAll(message: unknown[]): Promise<void> {
    let began = performance.now();
    for (let at = 1; at < message.length; at += RUN_LENGTH) {
      const id = message[at] as number;
      const claim = message[at + 1] as number;
      const words = this.#words;
      if (words !== undefined && Atomics.compareExchange(words, claim, id, -id) !== id) continue;
      const name = message[at + 3] as string;
      // Unless this function is known to be short, send the finished results before running it.
      if (this.#results.length > 0 && !((this.#durations.get(name) ?? Infinity) < SHORT_US)) {
        this.#flush();
      }
      const attempt = new Attempt(this, id, message[at + 2] as number, this.#index);
      this.#attempt = attempt;
      let state: number = STATE.ready;
      let value: unknown;
      let isTheirs = false;
      try {
        const perWorker = message[at + 5] as readonly number[] | undefined;
        const sent = message[at + 4] as PassedArguments;
        const given = receivedArguments(sent);
        const args = perWorker === undefined ? given : await this.#withOwnValues(given, perWorker);
        const run = this.#exports[name];
        if (typeof run !== 'function') throw noFunction(name);
        value = runAsTask(attempt, () => (run as AnyFunction)(...args));
        if (isThenable(value)) {
          // A promise may take long, even if the function's last promise was quick: while this
          // call is awaited, the results of calls that have ended are sent.
          const late = this.#results.length > 0 ? setImmediate(() => this.#flush()) : undefined;
          try {
            value = await value;
          } finally {
            clearImmediate(late);
          }
        }
        if (sent instanceof Uint8Array) value = this.#pack(value);
        else if (isObject(value)) {
          const copy = transferListOf([value]).length > 0 ? undefined : smallCopy([value]);
          isTheirs = copy === undefined;
          if (copy !== undefined) [value] = copy.values;
        }
      } catch (error) {
        state = STATE.failed;
        value = encode(error).bytes;
      }
      if (words !== undefined) Atomics.store(words, claim, ENDED);
      attempt.release();
      this.#attempt = undefined;
      const now = performance.now();
      const us = Math.round((now - began) * 1_000);
      began = now;
      this.#durations.set(name, us);
      // The previous attempt may have failed because the coordinator could not read its result.
      if (attempt.attempt > 1) this.#sendAlone(id, state, value, us);
      else this.#send(id, state, value, us, isTheirs);
    }
  }

  /** The arguments, with this worker's own values in place of PerWorkerValues. */
  async #withOwnValues(
    given: readonly unknown[],
    perWorker: readonly number[],
  ): Promise<unknown[]> {
    const args = [...given];
    for (let at = 0; at < perWorker.length; at += 2) {
      const id = perWorker[at + 1] as number;
      try {
        args[perWorker[at] as number] = await this.#resources.get(id);
      } catch (error) {
        throw new ClosureInputError(`A per-worker value could not be made: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
    return args;
  }

  /** @throws DataCloneError; RangeError: the value is nested too deeply */
  #pack(value: unknown): Uint8Array {
    try {
      const bytes = packValue(value);
      return this.#words === undefined ? bytes : toPost(bytes);
    } catch (error) {
      throw dataCloneError(error);
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
      const record = encode(dataCloneError(error)).bytes;
      this.#channel.post([FROM_WORKER.results, id, STATE.failed, record, us]);
    }
  }

  #prepare(id: number, resource: Resource): void {
    const made = this.#make(resource);
    made.catch(() => {}); // the functions that use the resource fail with it
    this.#resources.set(resource.id, made);
    const prepared = (): void => this.#channel.post([FROM_WORKER.prepared, id]);
    made.then(prepared, prepared);
  }

  async #make(resource: Resource): Promise<unknown> {
    if (resource.kind === 'broken') throw decode(resource.record).value;
    const attempt = new Attempt(this, NO_CLOSURE, 1, this.#index);
    if (resource.kind === 'dataset') {
      const build = this.#exports[resource.name];
      if (typeof build !== 'function') throw noFunction(resource.name);
      const args = receivedArguments(resource.args);
      return await runAsTask(attempt, () => build(...args));
    }
    const dataset = (await this.#resources.get(resource.dataset)) as Partial<
      Iterable<unknown> & AsyncIterable<unknown>
    > | null;
    return runAsTask(attempt, () => iteratorOf(dataset));
  }
}

function noFunction(name: string): TypeError {
  const error = new TypeError(`The module has no function '${name}': ${PASS_A_NAME}`);
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}

/** An async iterator of a data set, which may be iterable or async iterable. */
function iteratorOf(
  dataset: Partial<Iterable<unknown> & AsyncIterable<unknown>> | null,
): AsyncIterator<unknown> {
  const asynchronous = dataset?.[Symbol.asyncIterator]?.();
  if (asynchronous !== undefined) return asynchronous;
  const iterator = dataset?.[Symbol.iterator]?.();
  if (iterator === undefined)
    throw new TypeError(
      'The data set is not iterable: its function must return an iterable or an async iterable',
    );
  return {
    next: async () => iterator.next(),
    return: async (value) => iterator.return?.(value) ?? { done: true, value },
  };
}
