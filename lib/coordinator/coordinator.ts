/** The public class `Coordinator`: checks the arguments of callers, and documents its promises. */

import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:worker_threads';
import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  checkString,
  invalidValue,
  nameOf,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { isThenable } from '../base/thrown-value.ts';
import { FailedPreconditionError, type Straggler } from '../errors/errors.ts';
import { type Timeline, timeline } from '../events/timeline.ts';
import { STOP_KINDS } from '../native/binding.ts';
import { binding, firstSlab, hoistsReads } from '../native/native.ts';
import type { StopRecord } from '../record/stop-record.ts';
import { Attachment, findAttachmentsBy } from './attachment.ts';
import {
  COORDINATOR_OPTIONS,
  type CoordinatorOptions,
  checkCoordinatorOptions,
  type JoinOptions,
  type RunOptions,
} from './coordinator-options.ts';
import { type DiagnoseOptions, type Diagnosis, diagnose } from './diagnosis/diagnose.ts';
import { explain, leftBehind, type StopExplanation, shown } from './explain.ts';
import { attachmentOfHandle, type CoordinatorHandle } from './handle.ts';
import { defer, onStop } from './hooks.ts';
import { join, refuseSelfJoin } from './join.ts';
import { endLink } from './link.ts';
import {
  adoptWorkers,
  exitAfterStop,
  forgetFiredDeadlines,
  mirror,
  stopAfter,
  stopOnAbort,
  stopOnClose,
  stopOnUncaught,
} from './links.ts';
import { endScope, runIn } from './nursery.ts';
import { callSite, report, requestPlainStop } from './requests.ts';
import { checkSignals, stopOnSignals } from './signal-links.ts';
import { type CoordinatorForkOptions, fork } from './threads/fork.ts';
import { runTask } from './threads/tasks.ts';
import {
  checkThread,
  type JoinableThread,
  register,
  type ThreadInfo,
  toThreadInfo,
} from './threads/watch.ts';
import { type CoordinatorSpawnOptions, currentAttachment, spawn } from './threads/workers.ts';
import { waitForStop, waitForStopSync } from './waits.ts';

// V8 treats an imported binding as mutable. With a constant of this module, it compiles the
// address of the array into `shouldStop()`.
const nearWords = firstSlab;

function indexOfNearWord({ words, wordIndex }: Attachment): number {
  if (hoistsReads || words.buffer !== nearWords.buffer) return 0;
  return wordIndex + words.byteOffset / words.BYTES_PER_ELEMENT;
}

/** Set while a Coordinator is made for an attachment that exists already. */
let adopted: Attachment | undefined;

// The registry holds the attachment weakly: an attachment can refer to its public object, through
// the stack of an abort reason or a listener, and that object would never be collected.
const collected = new FinalizationRegistry<WeakRef<Attachment>>((ref) => ref.deref()?.abandon());

let unnamed = 0;

const RUN_OPTIONS = {
  ...COORDINATOR_OPTIONS,
  stopOnSignals: checkSignals,
  stopOnUncaught: checkBoolean,
  exitAfterStopMs: checkDuration,
};
const TASK_OPTIONS = { name: checkString, daemon: checkBoolean };

/**
 * One stop flag and one stop record for a set of threads: JavaScript threads, native threads,
 * processes and async tasks. The counterpart of TensorFlow's `tf.train.Coordinator`.
 *
 * Any thread may request a stop, all threads see it at once, and `join()` throws the first error.
 *
 * Threads have to look (`shouldStop()`, a wait, `signal`): nothing interrupts code that never does.
 * Garbage collection of a Coordinator, or leaving its scope, never stops anything.
 *
 * @example
 * ```js
 * import { Coordinator } from 'allstop';
 *
 * const coord = new Coordinator();
 * coord.start(async () => {
 *   while (!(await coord.waitForStop(100))) console.log('works');
 *   console.log('stopped');
 * });
 * coord.requestStop(new Error('disk full'));
 * await coord.join().catch((error) => console.log(error.message)); // stopped, then disk full
 * ```
 */
export class Coordinator implements AsyncDisposable {
  readonly #attachment: Attachment;
  readonly #nearWord: number; // the index of its mirror in nearWords; 0 if it is in another slab

  static {
    findAttachmentsBy((coord) => (#attachment in coord ? coord.#attachment : undefined));
    showAs(Coordinator.prototype, (coord) => shown(coord.#attachment));
    for (const name of ['stop', 'abort', 'cancel']) {
      const value = (): never => {
        throw invalidValue(
          `A coordinator has no ${name}(): call requestStop(), or requestStop(error)`,
        );
      };
      const hint = { value, writable: true, configurable: true };
      Object.defineProperty(Coordinator.prototype, name, hint);
    }
  }

  /** @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError (`ERR_OUT_OF_RANGE`) */
  constructor(options?: CoordinatorOptions) {
    if (adopted !== undefined) {
      this.#attachment = adopted;
    } else {
      const { name, types, graceMs } = checkCoordinatorOptions(options);
      this.#attachment = Attachment.create(
        name ?? `coordinator-${++unnamed}`,
        types ?? ['OutOfRangeError'], // these two as in TensorFlow
        graceMs ?? 120_000,
      );
    }
    const attachment = this.#attachment;
    this.#nearWord = indexOfNearWord(attachment);
    attachment.belongTo(this);
    attachment.native.bindCapsule(this);
    collected.register(this, attachment.ref);
  }

  static #adopt(attachment: Attachment): Coordinator {
    const existing = attachment.coordinator;
    if (existing instanceof Coordinator) return existing;
    adopted = attachment;
    try {
      return new Coordinator();
    } finally {
      adopted = undefined;
    }
  }

  /**
   * The coordinator whose `handle` another JavaScript thread of this process has read. In one
   * thread it is the same object each time, while that object lives.
   *
   * @example
   * ```js
   * import { isMainThread, Worker, workerData } from 'node:worker_threads';
   * import { Coordinator } from 'allstop';
   *
   * if (isMainThread) {
   *   const coord = new Coordinator();
   *   coord.registerThread(new Worker(new URL(import.meta.url), { workerData: coord.handle }));
   *   await coord.join(); // until the worker has ended
   *   console.log(coord.shouldStop()); // true
   * } else {
   *   Coordinator.attach(workerData).requestStop();
   * }
   * ```
   *
   * @throws InvalidHandleError (`ERR_ALLSTOP_INVALID_HANDLE`): the handle is stale, or comes
   *   from another process or another copy of the package; TypeError: `handle` is not an object
   */
  static attach(handle: CoordinatorHandle): Coordinator {
    return Coordinator.#adopt(attachmentOfHandle(handle));
  }

  static #current: Coordinator | undefined | null = null;

  /**
   * The coordinator that spawned this worker, or forked this process. Undefined in every other
   * thread, also in a worker that a spawned worker has started.
   */
  static current(): Coordinator | undefined {
    if (Coordinator.#current === null) {
      const attachment = currentAttachment();
      Coordinator.#current = attachment && Coordinator.#adopt(attachment);
    }
    return Coordinator.#current;
  }

  /**
   * Runs `body` with a new coordinator, as a nursery for the threads that it starts. When `body`
   * has returned, `run` waits until all registered threads but daemon threads have ended, or until a
   * stop is requested; then it requests a stop, joins, calls the functions of `defer`, and gives the
   * value of `body`. If `body` throws, `run` requests
   * a stop with that error, joins, and rejects with the first error; a `body` that throws the echo
   * of a stop without an error (the AbortError of a `fetch`, after Ctrl-C) has just ended.
   *
   * If the stop itself has no error (a signal, a plain request), `run` rejects with the first error
   * that a thread, task or hook has reported since; echoes and clean errors do not count. `join()`
   * does not throw such an error: it is in `stopRecord.suppressed`.
   *
   * If a signal has stopped the coordinator, `run` resolves, and `process.exitCode` is unset or 0,
   * it is 128 + the signal's number (130 for SIGINT). If `run` rejects, it is left as it is.
   *
   * A LooperThread ends only after a stop: one that serves other threads is a daemon (`daemon: true`),
   * for another one the body sees to a stop. A server or a timer is not a registered thread: a body that has nothing else awaits `coord.waitForStop()`.
   *
   * The grace period (`stopGracePeriodMs`) begins when `body` has returned and a stop is requested;
   * `exitAfterStopMs` counts from the stop.
   *
   * @example
   * ```js
   * import { setTimeout } from 'node:timers/promises';
   * import { Coordinator } from 'allstop';
   *
   * const body = (coord) => {
   *   coord.onStop(() => console.log('closed'));
   *   coord.start(() => setTimeout(100, undefined, { signal: coord.signal }));
   *   return 42;
   * };
   * console.log(await Coordinator.run(body, { stopOnSignals: ['SIGINT'] })); // closed, then 42
   * ```
   *
   * @returns the value of `body`; undefined if `body` threw the echo of a stop without an error
   * @throws (rejects) the error of the stop, else the first one since, else a clean error that
   *   `body` threw, else what `join()` throws (StragglersError); TypeError, RangeError
   */
  static async run<T>(
    body: (coord: Coordinator) => T | PromiseLike<T>,
    options?: RunOptions,
  ): Promise<T | undefined> {
    checkFunction('body', body);
    const {
      stopOnSignals: signals,
      stopOnUncaught: uncaught,
      exitAfterStopMs: exitMs,
      ...rest
    } = checkOptions('options', options, RUN_OPTIONS);
    const coord = new Coordinator(rest);
    try {
      const site = callSite(Coordinator.run);
      if (signals !== undefined) stopOnSignals(coord.#attachment, signals, site);
      if (uncaught === true) stopOnUncaught(coord.#attachment, site);
      // Not a link that the end of `run` undoes: a thread left behind would keep the process alive.
      if (exitMs !== undefined)
        coord.#attachment.links.delete(exitAfterStop(coord.#attachment, exitMs, undefined));
      return await runIn(coord.#attachment, () => body(coord), site);
    } finally {
      coord.#end();
    }
  }

  /** The option `name`. */
  get name(): string {
    return this.#attachment.native.name;
  }

  /**
   * What another JavaScript thread of this process passes to `attach`. Reading the handle keeps
   * the state alive until the coordinator is disposed of, or until this thread ends while no other
   * thread is attached.
   */
  get handle(): CoordinatorHandle {
    const { native } = this.#attachment;
    native.publish();
    return { type: 'allstop.Coordinator', world: binding().world, id: native.id };
  }

  /**
   * This thread's signal. It aborts when any thread requests a stop: in the thread that called
   * `requestStop` before that call returns, in other threads when the event loop next turns or
   * when `signal` is read. The reason is the recorded error, else an `AbortError` without frames
   * (who has stopped is in `stopRecord`), whose cause is the error of a clean stop. After `clearStop()` there is a new signal. It takes any number
   * of listeners without a warning.
   */
  get signal(): AbortSignal {
    return this.#attachment.signal.read(true);
  }

  /** Whether a `join()` has completed since the last `clearStop()`. */
  get joined(): boolean {
    return this.#attachment.native.joined();
  }

  /** The registered threads. A thread that ends leaves the list at once. */
  get threads(): ThreadInfo[] {
    return this.#attachment.native.threads().map(toThreadInfo);
  }

  /**
   * The threads that a `join()` has found alive at the end of its grace period, and forgotten: no
   * later join waits for them. A thread leaves the list when it ends, when the JavaScript thread
   * that watches it ends, or when it is registered again. Of more than 1,024 the oldest are left out.
   */
  get leftBehind(): Straggler[] {
    return leftBehind(this.#attachment);
  }

  /** Who stopped the coordinator, when and why; undefined while `shouldStop()` is false. */
  get stopRecord(): StopRecord | undefined {
    return this.#attachment.errors.record();
  }

  /**
   * Requests that all threads stop, with an error, or without one (undefined, null). The first
   * stop is the record; a later error is kept in `stopRecord.suppressed`. Any thread may call it.
   *
   * @throws `error`, after a completed `join()`, since no join would throw it: the flag stays as it
   *   was, as in TensorFlow
   */
  requestStop(error?: unknown): void {
    const stack = (): string => callSite(this.requestStop);
    if (error === undefined || error === null) {
      requestPlainStop(this.#attachment, { via: 'call', stack });
    } else if (report(this.#attachment, error, { via: 'call', stack }) === 'refused') {
      throw error;
    }
  }

  /** Whether a stop is requested. While none is, the call is two plain reads of memory. */
  shouldStop(): boolean {
    return nearWords[this.#nearWord] !== 0 && this.#attachment.shouldStop();
  }

  /**
   * Resolves to true when a stop is requested, even if it is cleared at once, or to false after
   * `timeoutMs` milliseconds (default Infinity; 0 polls). Keeps the event loop alive meanwhile.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * console.log(await coord.waitForStop(10)); // false: nobody has requested a stop
   * coord.requestStop();
   * console.log(await coord.waitForStop()); // true
   * ```
   *
   * @param options.signal Ends the wait. Default: none
   * @throws (rejects) the reason of `options.signal`; TypeError, RangeError
   */
  waitForStop(
    timeoutMs: number = Number.POSITIVE_INFINITY,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<boolean> {
    // Not an async function: its result would arrive three microtasks later.
    try {
      checkDuration('timeoutMs', timeoutMs);
      const { signal } = checkOptions('options', options, { signal: checkSignal });
      return waitForStop(this.#attachment, timeoutMs, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `waitForStop`, but blocks this thread. If it is a worker, another thread that calls
   * `terminate()` or `process.exit()` ends it within 50 ms.
   *
   * @throws TypeError, RangeError
   */
  waitForStopSync(timeoutMs: number = Number.POSITIVE_INFINITY): boolean {
    checkDuration('timeoutMs', timeoutMs);
    return waitForStopSync(this.#attachment, timeoutMs);
  }

  /**
   * Resets the flag, the record and `joined`. Registered threads stay registered, and stopped
   * children stay stopped. Waits that had begun still see the stop. A join that had begun goes on
   * to its grace period and throws the error that is recorded when it ends, as in TensorFlow. It
   * also marks the coordinator as joined, so await it before you reuse the coordinator.
   *
   * @throws FailedPreconditionError: the parent is stopped; or this is the coordinator of a cluster
   *   or of a forked process, which no thread can clear
   */
  clearStop(): void {
    if (this.#attachment.clearStop()) {
      forgetFiredDeadlines(this.#attachment);
      return;
    }
    throw new FailedPreconditionError(
      this.#attachment.native.isClearable()
        ? 'A child cannot clear its stop while its parent is stopped'
        : 'The coordinator of a pool, a cluster or a forked process cannot be cleared: what its stop has ended does not come back',
    );
  }

  /**
   * Calls `fn`. An error that it throws, or rejects with, is reported as with `requestStop` and
   * not thrown again. A normal end changes nothing.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.stopOnException(() => JSON.parse('{'));
   * await coord.join().catch((error) => console.log(error.name)); // SyntaxError
   * ```
   *
   * @returns the result of `fn`; undefined after an error
   * @throws (or rejects) the error of `fn`, after a completed `join()`; TypeError: no function
   */
  stopOnException<T>(fn: () => PromiseLike<T>): Promise<T | undefined>;
  stopOnException<T>(fn: () => T): T | undefined;
  stopOnException(fn: () => unknown): unknown {
    checkFunction('fn', fn);
    const attachment = this.#attachment; // if `this` is wrong, throws before `fn` has run
    const swallow = (error: unknown): undefined => {
      if (report(attachment, error, { via: 'exception' }) === 'refused') throw error;
    };
    try {
      const result = fn();
      // Not Promise.resolve(result), which may return `result` itself, with a `catch` of its own.
      return isThenable(result) ? new Promise((resolve) => resolve(result)).catch(swallow) : result;
    } catch (error) {
      return swallow(error);
    }
  }

  /** Throws the recorded error, if there is one. The record keeps the error. */
  raiseRequestedException(): void {
    const record = this.#attachment.native.stop();
    if (record === null || record.error === null || STOP_KINDS[record.kind] !== 'error') return;
    throw this.#attachment.errors.give(record.error);
  }

  /**
   * Registers a thread: `join` waits for it, and its failure requests a stop. Registering it
   * twice changes nothing. The JavaScript thread that makes this call watches `thread`. The
   * `join()` of a custom object is called once, during this call.
   *
   * @param options.name Default: `worker-N`, `process-PID`, `promise`, or the `name` of a custom
   *   object
   * @throws TypeError; SelfJoinError: `thread` is this coordinator
   */
  registerThread(thread: JoinableThread, options?: { name?: string | undefined }): void {
    checkThread(this.#attachment, 'thread', thread);
    const { name } = checkOptions('options', options, { name: checkString });
    register(this.#attachment, thread, name);
  }

  /**
   * Runs `fn` now as an async task: a registered thread that runs in this JavaScript thread. The
   * promise resolves when the task has ended, and never rejects: errors go to the coordinator.
   *
   * @param options.name Default: the name of `fn`, or "task"
   * @param options.daemon Whether the task serves other threads: when the body of `Coordinator.run`
   *   has returned, and only daemon threads are alive, `run` requests the stop. Default: false
   * @throws TypeError, at once: `fn` is no function, or an option is not valid
   */
  start(
    fn: (coord: Coordinator) => unknown,
    options?: { name?: string | undefined; daemon?: boolean | undefined },
  ): Promise<void> {
    checkFunction('fn', fn);
    const { name, daemon } = checkOptions('options', options, TASK_OPTIONS);
    return runTask(this.#attachment, () => fn(this), name ?? nameOf(fn) ?? 'task', daemon, fn);
  }

  /**
   * Starts a Worker and registers it. The Worker finds this coordinator with
   * `Coordinator.current()`. Takes the arguments of `new Worker`, and `daemon` as `start` does.
   *
   * @example
   * ```js
   * import { isMainThread } from 'node:worker_threads';
   * import { Coordinator } from 'allstop';
   *
   * if (isMainThread) {
   *   const coord = new Coordinator();
   *   coord.spawn(new URL(import.meta.url), { name: 'reader' });
   *   await coord.join();
   *   console.log(coord.stopRecord.requester.threadName); // reader
   * } else {
   *   Coordinator.current().requestStop();
   * }
   * ```
   *
   * @throws the errors of `new Worker`; TypeError: `options` is no object, or has an option
   *   that Worker does not have
   */
  spawn(url: URL | string, options?: CoordinatorSpawnOptions): Worker {
    return spawn(this.#attachment, url, options);
  }

  /**
   * As `spawn`, for a process: Node's `fork`. Stops go both ways; the end of this process stops the
   * child with an UnavailableError. A stopped child stays stopped.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const parent = Coordinator.current(); // undefined, but in the child process
   * if (parent === undefined) {
   *   const coord = new Coordinator();
   *   coord.fork(new URL(import.meta.url));
   *   await coord.join(); // until the child process has ended
   * } else {
   *   parent.requestStop();
   * }
   * ```
   *
   * @throws also UnavailableError: the system has no descriptor or thread left
   */
  fork(
    module: URL | string,
    args?: readonly string[],
    options?: CoordinatorForkOptions,
  ): ChildProcess {
    return fork(this.#attachment, module, args, options);
  }

  /**
   * Registers a hook: at each stop, this JavaScript thread calls `fn` with the record. Hooks of one
   * thread run one after the other, the last registered first, each awaited: what was opened last
   * is closed first. Registered after the stop, `fn` runs in the next turn of the event loop.
   * `join()` waits for hooks as for threads: from the stop until `fn` has ended a hook is alive, and
   * its thread's event loop with it; before the stop it holds up nothing. After `clearStop()` it
   * stands for the next stop. If its JavaScript thread ends before a stop, the hook is gone.
   * If `fn` throws or rejects, and nothing else has failed, `join()`, `run` and disposal throw its
   * error; otherwise the error is in `stopRecord.suppressed`.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.onStop(async () => console.log('the database is closed'));
   * coord.onStop(() => console.log('the server is closed')); // the last registered is the first
   * coord.requestStop();
   * await coord.join(); // waits for both
   * ```
   *
   * @param options.name for `threads`, `explain()` and messages; by default the name of `fn`
   * @returns the hook; disposing of it removes it, and a run that has begun goes on
   * @throws TypeError
   */
  onStop(fn: (record: StopRecord) => unknown, options?: { name?: string | undefined }): Disposable {
    checkFunction('fn', fn);
    const { name } = checkOptions('options', options, { name: checkString });
    return onStop(this.#attachment, fn, name ?? nameOf(fn) ?? 'hook');
  }

  /**
   * Registers a function that `run` and disposal call at their end, when they have joined: the last
   * registered first, one after the other, each awaited. It closes what threads use (a database, a
   * file); `onStop` is for what has to be told to stop. It is called also if a thread was left
   * behind, or if an error is on its way. If it throws, the others are called all the same; its error
   * is thrown if nothing else is, and otherwise is in `stopRecord.suppressed` (`via: 'defer'`).
   * Called once; at once, if `run` or the disposal has called the others. It belongs to this
   * JavaScript thread, and to the `run` or the disposal that ends the coordinator here: a coordinator
   * that neither ends never calls it.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * await Coordinator.run((coord) => {
   *   coord.defer(() => console.log('the database is closed'));
   *   coord.start(() => console.log('the last row is written'));
   * }); // the last row is written, the database is closed
   * ```
   *
   * @param options.name for `threads` and messages; by default the name of `fn`
   * @returns disposing of it takes `fn` back; a call that has begun goes on
   * @throws TypeError
   */
  defer(fn: () => unknown, options?: { name?: string | undefined }): Disposable {
    checkFunction('fn', fn);
    const { name } = checkOptions('options', options, { name: checkString });
    return defer(this.#attachment, fn, name ?? nameOf(fn) ?? 'deferred');
  }

  /**
   * Waits until all threads have ended. Once a stop is requested it waits for the grace period
   * at most. The threads are those that are registered now, and those passed, which are
   * registered by this call. Throws the recorded error if there is one; in the thread that
   * reported it, the identical value. Threads that are alive after the grace period are left
   * behind: `leftBehind` lists them. If this method does not throw a StragglersError then, since
   * there is an error or `ignoreLiveThreads`, the process emits a warning that names them
   * (`ALLSTOP_STRAGGLERS`).
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.start(() => new Promise(() => {}), { name: 'endless' });
   * coord.requestStop();
   * await coord.join({ stopGracePeriodMs: 50 }).catch(({ stragglers }) => {
   *   console.log(stragglers[0].name); // endless
   * });
   * ```
   *
   * @throws (rejects) StragglersError: threads are alive after the grace period;
   *   SelfJoinError: the calling thread or task is one of the threads; the reason of
   *   `options.signal`; TypeError, RangeError
   */
  join(options?: JoinOptions): Promise<void>;
  join(threads: Iterable<JoinableThread>, options?: JoinOptions): Promise<void>;
  async join(first?: Iterable<JoinableThread> | JoinOptions, second?: JoinOptions): Promise<void> {
    await join(this.#attachment, first, second);
  }

  /**
   * A child: a coordinator that stops when this one stops, at once if this one is stopped. A stop
   * of the child does not stop this one, and a join of this one does not wait for the child's
   * threads. Options that are left out have the values of this one. A child that is not stopped and
   * has a hook, or a listener on its signal, lives as long as this one, though the program drops it:
   * dispose of it (`await using`, `[Symbol.asyncDispose]()`).
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const server = new Coordinator();
   * const request = server.child();
   * request.stopAfter(10);
   * console.log(await request.waitForStop(), server.shouldStop()); // true false
   * await request.join().catch((error) => console.log(error.name)); // DeadlineExceededError
   * ```
   *
   * @throws RangeError (`ERR_OUT_OF_RANGE`): nested deeper than 256 levels; TypeError
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
      const error = new RangeError(
        'Coordinators nest 256 levels deep at most: make this one a child of a higher one',
      );
      throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
    }
    return Coordinator.#adopt(Attachment.of(native));
  }

  /**
   * Links `signal`: the coordinator stops when `signal` aborts, or now if it has. A reason that
   * is an AbortError stops it without an error, any other reason stops it with that reason.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * const controller = new AbortController();
   * coord.stopOnAbort(controller.signal);
   * controller.abort(new Error('the user has left'));
   * await coord.join().catch((error) => console.log(error.message)); // the user has left
   * ```
   *
   * @returns the link; disposing of it undoes it
   * @throws TypeError
   */
  stopOnAbort(signal: AbortSignal): Disposable {
    checkSignal('signal', signal);
    return stopOnAbort(this.#attachment, signal, callSite(this.stopOnAbort));
  }

  /**
   * Links `resource`: the coordinator stops when `resource` emits one of `events` (default:
   * 'close'; of a Worker, which emits no 'close', 'exit'), or now if `events` has that one and
   * `resource` says that it is closed, as streams, sockets, WebSockets, processes and Workers do;
   * servers, dgram sockets, MessagePorts, BroadcastChannels, FileHandles and FSWatchers do not. By
   * default the stop has no error. With `as: 'error'` it has the resource's own error, or an
   * UnavailableError if the resource has none; after the stop, which ends resources, only the
   * resource's own error counts. The link listens to 'error' of a Worker, whose error
   * then stops the coordinator and does not end the process.
   *
   * @example
   * ```js
   * import { createServer } from 'node:http';
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * const server = createServer().listen(0);
   * coord.stopOnClose(server);
   * server.close();
   * console.log(await coord.waitForStop()); // true
   * ```
   *
   * @returns the link; disposing of it undoes it
   * @throws TypeError; what `resource` throws when it is given a listener
   */
  stopOnClose(
    resource: NodeJS.EventEmitter | EventTarget,
    options?: { events?: readonly string[] | undefined; as?: 'plain' | 'error' | undefined },
  ): Disposable {
    return stopOnClose(this.#attachment, resource, options, callSite(this.stopOnClose));
  }

  /**
   * Links process signals: the coordinator stops when the process receives one of them (default:
   * SIGINT, SIGTERM), even while the main thread is blocked or busy. A further signal has the
   * system's default action if it comes 500 ms later or after that; before, it belongs to the same
   * press of a key, which launchers pass on, and does nothing. Nor does one that this process sends
   * to itself. Never sets an exit code. Main thread only.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.stopOnSignals(['SIGTERM']);
   * process.kill(process.pid, 'SIGTERM');
   * await coord.waitForStop();
   * console.log(coord.stopRecord.requester.signal); // SIGTERM
   * ```
   *
   * @returns the link; disposing of it undoes it
   * @throws FailedPreconditionError: in a worker; TypeError, RangeError
   */
  stopOnSignals(signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']): Disposable {
    checkSignals('signals', signals);
    return stopOnSignals(this.#attachment, signals, callSite(this.stopOnSignals));
  }

  /**
   * Links the uncaught errors of this JavaScript thread: an uncaught exception or an unhandled
   * rejection stops the coordinator with that error, instead of ending the process (or the worker)
   * at once. The exit code of the process is then 1, unless the program has set one that is not 0.
   *
   * @returns the link; disposing of it gives uncaught errors back to Node
   */
  stopOnUncaught(): Disposable {
    return stopOnUncaught(this.#attachment, callSite(this.stopOnUncaught));
  }

  /**
   * Links the Workers that this JavaScript thread creates from now on, in libraries too: one that
   * dies of an uncaught error stops the coordinator with that error. A Worker that is terminated, or
   * that exits with a code and no error, does not: pools trim their workers.
   *
   * @returns the link; disposing of it undoes it, also for the Workers that it has found
   */
  adoptWorkers(): Disposable {
    return adoptWorkers(this.#attachment);
  }

  /**
   * Sets a deadline: the coordinator stops with a DeadlineExceededError `ms` milliseconds from
   * now, even if all JavaScript threads are busy then. Does not keep the process alive.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.stopAfter(10);
   * while (!coord.shouldStop()); // busy: the deadline passes all the same
   * await coord.join().catch((error) => console.log(error.name)); // DeadlineExceededError
   * ```
   *
   * @returns the link; disposing of it cancels the deadline
   * @throws TypeError, RangeError; UnavailableError: the system has no thread left for it
   */
  stopAfter(ms: number): Disposable {
    return stopAfter(this.#attachment, ms, callSite(this.stopAfter));
  }

  /**
   * Ends the process if it is still alive `ms` milliseconds after the stop, whatever its threads
   * do: a native thread writes to standard error which threads are left and who requested the
   * stop, then ends the process at once, without exit handlers. `clearStop()` and disposal of
   * the link call the countdown off; a completed `join()`, and the end of `run` or of the thread that
   * made the link, do not.
   *
   * @param options.exitCode 0 to 255. Default: 128 + n if signal number n made the stop, else 1
   * @throws TypeError, RangeError; UnavailableError: the system has no thread left for it
   */
  exitAfterStop(ms: number, options?: { exitCode?: number | undefined }): Disposable {
    return exitAfterStop(this.#attachment, ms, options);
  }

  /**
   * Mirrors the stop in shared memory (`words`: an Int32Array over a SharedArrayBuffer), for code
   * that can read nothing else: pyodide, WebAssembly. At each stop the thread that requests it
   * stores `value` in `words[index]`, even while this thread is busy (now, if it is stopped
   * already); `Atomics.notify` follows from this thread when its event loop next turns. The link
   * ends with this thread; `clearStop()` leaves the word as it is.
   *
   * @param value Default: 1
   * @throws TypeError, RangeError
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * const words = new Int32Array(new SharedArrayBuffer(4));
   * coord.mirror(words, 0);
   * coord.requestStop();
   * console.log(words[0]); // 1
   * ```
   */
  mirror(words: Int32Array, index: number, value = 1): Disposable {
    return mirror(this.#attachment, words, index, value);
  }

  /**
   * Why `shouldStop()` is true or false: fields for programs, `toString()` for people.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator({ name: 'import' });
   * coord.start(() => coord.waitForStop(), { name: 'reader' });
   * coord.requestStop(new Error('disk full'));
   * console.log(coord.explain().toString());
   * ```
   */
  explain(): StopExplanation {
    return explain(this.#attachment);
  }

  /**
   * `explain()`, and where the threads are: the stack of each JavaScript thread, of the main thread,
   * too, and the wait of each native thread and process; a thread without a stack says why. No
   * thread is paused; one that has not answered after `options.timeoutMs` milliseconds (default
   * 1,000) is said to be blocked. @throws (rejects) TypeError, RangeError
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * const stubborn = new Promise((resolve) => setTimeout(resolve, 300));
   * coord.start(async function reader() {
   *   await stubborn;
   * });
   * coord.requestStop();
   * console.log((await coord.diagnose()).toString()); // the task 'reader' has not ended, and why
   * await coord.join();
   * ```
   */
  async diagnose(options?: DiagnoseOptions): Promise<Diagnosis> {
    return diagnose(this.#attachment, options, callSite(this.diagnose));
  }

  /**
   * What has happened: the newest 4,096 events, by a monotonic clock. See docs/diagnose.md.
   *
   * @example
   * ```js
   * import { Coordinator } from 'allstop';
   *
   * const coord = new Coordinator();
   * coord.requestStop();
   * console.log(coord.timeline().events.map(({ type }) => type)); // [ 'stop-requested' ]
   * ```
   */
  timeline(): Timeline {
    return timeline(this.#attachment);
  }

  /**
   * Calls `requestStop()`, awaits `join()`, and calls the deferred functions. After that the handle
   * is stale, and the links that this thread has made are undone.
   *
   * @throws (rejects) as `Coordinator.run`: the error of the stop, else the first one since
   */
  async [Symbol.asyncDispose](): Promise<void> {
    refuseSelfJoin(this.#attachment); // first: a refused call changes nothing
    try {
      this.requestStop();
      await endScope(this.#attachment);
    } finally {
      this.#end();
    }
  }

  /** Makes the handle stale, and undoes this thread's links. */
  #end(): void {
    this.#attachment.native.unpublish();
    for (const link of this.#attachment.links) endLink(link);
  }
}
