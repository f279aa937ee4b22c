/** The public class: checks what callers pass, and documents what they may rely on. */

import type { Worker, WorkerOptions } from 'node:worker_threads';
import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  checkString,
  holds,
  invalidType,
  isIterable,
  nameOf,
} from '../base/arguments.ts';
import { isThenable } from '../base/thrown-value.ts';
import { FailedPreconditionError, InvalidHandleError, StragglersError } from '../errors/errors.ts';
import { STOP_KINDS } from '../native/binding.ts';
import { binding, firstSlab } from '../native/native.ts';
import { Attachment } from './attachment.ts';
import {
  type CoordinatorOptions,
  checkCoordinatorOptions,
  DEFAULT_CLEAN_STOP_ERRORS,
  DEFAULT_GRACE_PERIOD_MS,
  type JoinOptions,
} from './coordinator-options.ts';
import { explain, type StopExplanation } from './explain.ts';
import { type CoordinatorHandle, idOfHandle } from './handle.ts';
import {
  callSite,
  checkSignals,
  checkSource,
  stopAfter,
  stopOnAbort,
  stopOnClose,
  stopOnSignals,
} from './links.ts';
import type { StopRecord } from './stop-record.ts';
import { toStraggler } from './stragglers.ts';
import { enclosingTasks, runTask } from './tasks.ts';
import {
  checkThread,
  isThread,
  type JoinableThread,
  register,
  type ThreadInfo,
  toThreadInfo,
} from './watch.ts';
import { spawn } from './workers.ts';

// An import is a variable to the compiler, a constant of this module is not.
const nearWords = firstSlab;

function indexOfNearWord({ words, wordIndex }: Attachment): number {
  if (words.buffer !== nearWords.buffer) return 0;
  return wordIndex + words.byteOffset / words.BYTES_PER_ELEMENT;
}

/** Set while a Coordinator is made for an attachment that exists already. */
let adopted: Attachment | undefined;

// Weakly: an attachment can lead back to its public object, through the stack of an
// abort reason or a listener, and would keep it for ever.
const collected = new FinalizationRegistry<WeakRef<Attachment>>((ref) => ref.deref()?.abandon());

let unnamed = 0;

/**
 * One stop flag and one exception record for a set of threads: JavaScript's,
 * native ones, processes, and asynchronous tasks. TensorFlow's
 * `tf.train.Coordinator`.
 *
 * Any thread may request a stop, all see it at once, and whoever joins them gets
 * the first error. Threads must ask (`shouldStop()`, a wait, `signal`): nothing
 * can interrupt code that never does.
 *
 * Going out of scope, or garbage collection, never stops anything.
 */
export class Coordinator implements AsyncDisposable {
  readonly #attachment: Attachment;
  readonly #nearWord: number; // the index of its word in nearWords, else 0

  /**
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError (`ERR_OUT_OF_RANGE`)
   */
  constructor(options?: CoordinatorOptions) {
    if (adopted !== undefined) {
      this.#attachment = adopted;
    } else {
      const { name, types, graceMs } = checkCoordinatorOptions(options);
      this.#attachment = Attachment.create(
        name ?? `coordinator-${++unnamed}`,
        types ?? DEFAULT_CLEAN_STOP_ERRORS,
        graceMs ?? DEFAULT_GRACE_PERIOD_MS,
      );
    }
    const attachment = this.#attachment;
    this.#nearWord = indexOfNearWord(attachment);
    attachment.facade = this;
    attachment.native.bindCapsule(this);
    collected.register(this, new WeakRef(attachment));
  }

  static #adopt(attachment: Attachment): Coordinator {
    const existing = attachment.facade;
    if (existing !== undefined) return existing as Coordinator;
    adopted = attachment;
    try {
      return new Coordinator();
    } finally {
      adopted = undefined;
    }
  }

  /**
   * The coordinator behind a handle of another JavaScript thread of this process.
   * The same object each time, per thread, while it lives.
   *
   * @throws InvalidHandleError (`ERR_ALLSTOP_INVALID_HANDLE`): the handle is stale, of
   *   another process, or of another copy of the package.
   */
  static attach(handle: CoordinatorHandle): Coordinator {
    const id = idOfHandle('Coordinator', handle);
    if (binding().hasCoordinator(Number(id))) {
      const known = Attachment.find(id);
      if (known !== undefined) return Coordinator.#adopt(known);
      const attached = binding().attachCoordinator(Number(id));
      if (attached !== null) return Coordinator.#adopt(Attachment.of(attached));
    }
    throw new InvalidHandleError('The handle is stale: its Coordinator is disposed of or gone');
  }

  static #current: Coordinator | undefined | null = null;

  /** The coordinator that spawned this worker; undefined elsewhere, grandchildren included. */
  static current(): Coordinator | undefined {
    if (Coordinator.#current === null) {
      const native = binding().currentCoordinator();
      Coordinator.#current =
        native === null ? undefined : Coordinator.#adopt(Attachment.of(native));
    }
    return Coordinator.#current;
  }

  /**
   * Runs `body` with a new coordinator, then stops and joins all threads, whatever
   * the body came to. Rejects with the recorded error, or with what the body threw.
   */
  static async run<T>(
    body: (coord: Coordinator) => T | PromiseLike<T>,
    options?: CoordinatorOptions & { stopOnSignals?: readonly NodeJS.Signals[] | undefined },
  ): Promise<T> {
    checkFunction('body', body);
    const { stopOnSignals: signals, ...rest } = checkOptions('options', options);
    if (signals !== undefined) checkSignals(signals);
    const coord = new Coordinator(rest);
    if (signals !== undefined) coord.stopOnSignals(signals);
    try {
      let value: T;
      try {
        value = await body(coord);
      } catch (error) {
        coord.#attachment.report(error, { via: 'exception', hasCaller: false });
        await coord.join().catch((joined: unknown) => {
          if (coord.#attachment.native.status() !== null) throw joined; // the first error
        });
        throw error;
      }
      coord.requestStop();
      await coord.join();
      return value;
    } finally {
      coord.#end();
    }
  }

  get name(): string {
    return this.#attachment.native.name;
  }

  /**
   * For another JavaScript thread of this process. Reading it keeps the state
   * alive until the coordinator is disposed of, or this thread ends and nobody is
   * attached.
   */
  get handle(): CoordinatorHandle {
    const { native } = this.#attachment;
    native.publish();
    return { type: 'allstop.Coordinator', world: binding().world, id: native.id };
  }

  /**
   * This thread's signal; it aborts when a stop is requested anywhere: before
   * `requestStop` returns in the thread that called it, elsewhere when the event
   * loop next turns or this is read. The reason is the recorded error, else an
   * `AbortError` (whose cause is the error of a clean stop). After `clearStop()`
   * there is a fresh one. Any number of listeners, without a warning.
   */
  get signal(): AbortSignal {
    return this.#attachment.signal;
  }

  /** Whether a `join()` has completed, and no `clearStop()` since. */
  get joined(): boolean {
    return this.#attachment.native.joined();
  }

  /** The registered threads. One that ends leaves at once. */
  get threads(): ThreadInfo[] {
    return this.#attachment.native.threads().map(toThreadInfo);
  }

  /** Who stopped it, when and why; undefined while `shouldStop()` is false. */
  get stopRecord(): StopRecord | undefined {
    return this.#attachment.record();
  }

  /**
   * Asks all threads to stop, with an error or (undefined, null) without. The
   * first stop wins; a later error is kept in `stopRecord.suppressed`.
   *
   * Once a `join()` has completed nobody would see the error any more, so then it
   * is thrown here, and the flag stays as it was. (TensorFlow's.)
   */
  requestStop(error?: unknown): void {
    const stack = (): string => callSite(this.requestStop);
    if (error === undefined || error === null) {
      this.#attachment.requestPlainStop({ via: 'call', stack });
    } else if (this.#attachment.report(error, { via: 'call', stack }) === 'refused') {
      throw error;
    }
  }

  /** Whether a stop is requested: a plain read of one word while it is not. */
  shouldStop(): boolean {
    return nearWords[this.#nearWord] !== 0 && this.#attachment.shouldStop();
  }

  /**
   * Resolves to true when a stop is requested, also if it is cleared at once, or
   * to false after `timeoutMs` (0 polls). Keeps the event loop alive meanwhile.
   *
   * @throws (rejects) with the reason of `options.signal`; TypeError, RangeError
   */
  waitForStop(
    timeoutMs: number = Number.POSITIVE_INFINITY,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<boolean> {
    // Not an async function, which would hand the result on three turns later.
    try {
      checkDuration('timeoutMs', timeoutMs);
      const { signal } = checkOptions('options', options);
      if (signal !== undefined) checkSignal('options.signal', signal);
      return this.#attachment.waitForStop(timeoutMs, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `waitForStop`, blocking this thread. In a worker it gives way to
   * `terminate()` and `process.exit()` within 50 ms.
   */
  waitForStopSync(timeoutMs: number = Number.POSITIVE_INFINITY): boolean {
    checkDuration('timeoutMs', timeoutMs);
    return this.#attachment.waitForStopSync(timeoutMs);
  }

  /**
   * Resets the flag, the record and `joined`; registered threads stay registered,
   * and stopped children stay stopped. Whoever was waiting sees the stop all the
   * same: a join that had begun goes on to its grace period, and throws what is
   * recorded when it ends (TensorFlow's). Await it before you begin anew, or it
   * marks the new life as joined.
   *
   * @throws FailedPreconditionError: the parent is stopped; it is a cluster's
   */
  clearStop(): void {
    const { refuseClear } = this.#attachment;
    if (refuseClear !== undefined) throw new FailedPreconditionError(refuseClear);
    if (this.#attachment.clearStop()) return;
    throw new FailedPreconditionError('A child cannot clear its stop while its parent is stopped');
  }

  /**
   * Calls `fn`. What it throws, or rejects with, is reported as by `requestStop`
   * and swallowed; a normal end changes nothing.
   */
  stopOnException<T>(fn: () => PromiseLike<T>): Promise<T | undefined>;
  stopOnException<T>(fn: () => T): T | undefined;
  stopOnException(fn: () => unknown): unknown {
    checkFunction('fn', fn);
    const attachment = this.#attachment; // before `fn` runs: without it, nobody would be told
    const report = (error: unknown): undefined => {
      if (attachment.report(error, { via: 'exception' }) === 'refused') throw error;
    };
    try {
      const result = fn();
      // Not Promise.resolve(), which would trust a promise's own `catch`.
      return isThenable(result) ? new Promise((resolve) => resolve(result)).catch(report) : result;
    } catch (error) {
      return report(error);
    }
  }

  /** Throws the recorded error, if there is one. Does not clear it. */
  raiseRequestedException(): void {
    const record = this.#attachment.native.record();
    if (record === null || record.error === null || STOP_KINDS[record.kind] !== 'error') return;
    throw this.#attachment.errorOf(record.error).value;
  }

  /**
   * Registers a thread: `join` waits for it, and its failure requests a stop. A
   * set: twice is harmless. This JavaScript thread watches it; an object's `join()`
   * is called once, here and now.
   */
  registerThread(thread: JoinableThread, options?: { name?: string | undefined }): void {
    checkThread('thread', thread);
    const { name } = checkOptions('options', options);
    if (name !== undefined) checkString('options.name', name);
    register(this.#attachment, thread, name);
  }

  /**
   * Runs `fn` now as a registered asynchronous task of this JavaScript thread. The
   * promise tells when it has ended and never rejects: errors go to the coordinator.
   */
  start(
    fn: (coord: Coordinator) => unknown,
    options?: { name?: string | undefined },
  ): Promise<void> {
    checkFunction('fn', fn);
    const { name } = checkOptions('options', options);
    if (name !== undefined) checkString('options.name', name);
    return runTask(this.#attachment, () => fn(this), name ?? nameOf(fn));
  }

  /**
   * Starts a registered Worker, which finds this coordinator as
   * `Coordinator.current()`. Takes what `new Worker` takes, and throws what it throws.
   */
  spawn(url: URL | string, options?: WorkerOptions): Worker {
    return spawn(this.#attachment, url, options);
  }

  /**
   * Waits until all threads have ended or a stop is requested, then for the grace
   * period: the registered threads, as they are now, and those passed, which are
   * registered thereby. Throws the recorded error if there is one, with the
   * identical value in the thread that reported it.
   *
   * @throws (rejects) StragglersError: threads are alive after the grace period;
   *   SelfJoinError: this thread or task is one of them; the reason of
   *   `options.signal`; TypeError, RangeError
   */
  join(options?: JoinOptions): Promise<void>;
  join(threads: Iterable<JoinableThread>, options?: JoinOptions): Promise<void>;
  async join(first?: Iterable<JoinableThread> | JoinOptions, second?: JoinOptions): Promise<void> {
    const passed = isIterable(first);
    const meant = second !== undefined || typeof first === 'string' || isThread(first);
    if (!passed && first !== undefined && (meant || holds(() => Symbol.iterator in first))) {
      throw invalidType('threads', 'an iterable of threads', first);
    }
    const options = checkOptions('options', passed ? second : (second ?? (first as JoinOptions)));
    const { stopGracePeriodMs = this.#attachment.native.stopGracePeriodMs } = options;
    const { ignoreLiveThreads = false, signal } = options;
    checkDuration('options.stopGracePeriodMs', stopGracePeriodMs);
    checkBoolean('options.ignoreLiveThreads', ignoreLiveThreads);
    if (signal !== undefined) checkSignal('options.signal', signal);
    const threads = passed ? [...first] : [];
    for (const thread of threads) checkThread('threads[]', thread);
    if (signal?.aborted) throw signal.reason;
    const tasks = enclosingTasks(this.#attachment);
    this.#attachment.refuseSelfJoin(tasks); // before anything is registered
    for (const thread of threads) register(this.#attachment, thread);

    const result = await this.#attachment.join(stopGracePeriodMs, tasks, signal);
    const { stop, error, stragglers } = result;
    if (error !== null) throw this.#attachment.errorOf(error).value;
    if (stragglers.length === 0 || ignoreLiveThreads) return;
    const names = stragglers.map(({ name }) => name).join(' ');
    throw new StragglersError(`Coordinator stopped with threads still running: ${names}`, {
      stragglers: stragglers.map((thread) => toStraggler(thread, stop?.ageMs ?? 0)),
    });
  }

  /**
   * A coordinator that stops when this one does, now if it is stopped. Its own stop
   * stays its own, and this one's join does not wait for its threads. What the
   * options leave out is this one's.
   *
   * @throws RangeError (`ERR_OUT_OF_RANGE`): nested deeper than 256 levels
   */
  child(options?: CoordinatorOptions): Coordinator {
    const { name, types, graceMs } = checkCoordinatorOptions(options);
    const own = this.#attachment;
    const native = own.native.child(
      name ?? `${own.native.name}/${++unnamed}`,
      types ?? own.native.cleanStopTypes(),
      graceMs ?? own.native.stopGracePeriodMs,
    );
    if (native === null) {
      const error = new RangeError('Coordinators nest 256 levels deep at most');
      throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
    }
    return Coordinator.#adopt(Attachment.of(native));
  }

  /** Stops when `signal` aborts, now if it has: plainly for an AbortError, else with its reason. */
  stopOnAbort(signal: AbortSignal): Disposable {
    checkSignal('signal', signal);
    return stopOnAbort(this.#attachment, signal, callSite(this.stopOnAbort));
  }

  /**
   * Stops when `resource` emits one of the events (default: 'close'), now if it is
   * closed. `as: 'error'`: with the resource's own error, else an UnavailableError.
   */
  stopOnClose(
    resource: NodeJS.EventEmitter | EventTarget,
    options?: { events?: readonly string[] | undefined; as?: 'plain' | 'error' | undefined },
  ): Disposable {
    checkSource(resource);
    const { events = ['close'], as = 'plain' } = checkOptions('options', options);
    if (!holds(() => Array.isArray(events)))
      throw invalidType('options.events', 'an array of strings', events);
    for (const event of events) checkString('options.events[]', event);
    if (as !== 'plain' && as !== 'error') {
      throw invalidType('options.as', "one of 'plain', 'error'", as);
    }
    return stopOnClose(this.#attachment, resource, events, as, callSite(this.stopOnClose));
  }

  /**
   * Stops when the process receives one of the signals (default: SIGINT, SIGTERM),
   * also while the main thread is blocked or busy. A second one gets the system's
   * default action. Never sets an exit code. Main thread only.
   *
   * @throws FailedPreconditionError: in a worker
   */
  stopOnSignals(signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']): Disposable {
    checkSignals(signals);
    return stopOnSignals(this.#attachment, signals, callSite(this.stopOnSignals));
  }

  /**
   * Stops with a DeadlineExceededError `ms` milliseconds from now, whatever the
   * JavaScript threads are doing then. Does not keep the process alive.
   */
  stopAfter(ms: number): Disposable {
    return stopAfter(this.#attachment, ms, callSite(this.stopAfter));
  }

  /** Why `shouldStop()` is what it is. `toString()` is for people. */
  explain(): StopExplanation {
    return explain(this.#attachment);
  }

  /** `requestStop()`, then `join()`. Then its handle is stale and its links are undone. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.requestStop();
      await this.join();
    } finally {
      this.#end();
    }
  }

  /** Its handle is stale from now on, and this thread's links to it are undone. */
  #end(): void {
    this.#attachment.native.unpublish();
    for (const link of this.#attachment.links) link[Symbol.dispose]();
  }
}
