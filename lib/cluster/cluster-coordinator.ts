/** The public class: schedules functions, and holds the rules about their errors. */

import { addAbortListener, removeAbortListener } from '../abort-listeners.ts';
import {
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  invalidType,
  outOfRange,
} from '../arguments.ts';
import { Attachment } from '../attachment.ts';
import { Coordinator } from '../coordinator.ts';
import {
  CancelledError,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../errors.ts';
import { Timer } from '../timer.ts';
import { turn } from '../turn.ts';
import { makeCall } from './call.ts';
import { type Call, Closure, type Outcome } from './closure.ts';
import { ClosureQueue } from './closure-queue.ts';
import { Datasets } from './datasets.ts';
import { type Fetched, fetchAll } from './fetched.ts';
import { type AnyFunction, checkFunctionOrName, Functions } from './functions.ts';
import type { PerWorkerDataset, PerWorkerValues } from './per-worker.ts';
import { whenReady } from './readiness.ts';
import { RemoteValue, type Settle } from './remote-value.ts';
import type { Engine, ReadinessReport, Strategy, StrategyHost, WorkerInfo } from './strategy.ts';

export type ClusterCoordinatorOptions = {
  /** So many closures wait for workers; `schedule` waits while there are more. */
  maxQueued?: number | undefined;
  /** How often a function is run again after its worker has died. */
  retries?: number | undefined;
  /** How long what was cancelled may go on; then its worker is replaced. */
  cancelGraceMs?: number | undefined;
};

export type ScheduleOptions = {
  signal?: AbortSignal | undefined;
  /** For the closure's whole life, the wait for room included. */
  timeoutMs?: number | undefined;
};

/** What a function takes; each may be a worker's own. */
export type PerWorkerArgs<P extends readonly unknown[]> = {
  [I in keyof P]: P[I] | PerWorkerValues<P[I]>;
};

export type ScheduleArgs<P extends readonly unknown[]> = [] extends P
  ? [args?: PerWorkerArgs<P>, options?: ScheduleOptions]
  : [args: PerWorkerArgs<P>, options?: ScheduleOptions];

export type FunctionNames<M extends object> = {
  [K in keyof M]: M[K] extends AnyFunction ? K : never;
}[keyof M] &
  string;

type Result<F extends AnyFunction> = Awaited<ReturnType<F>>;
type Named<M extends object, K extends keyof M> = M[K] extends AnyFunction ? M[K] : AnyFunction;

export type ReadyOptions = {
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((report: ReadinessReport) => void) | undefined;
};

const MAX_QUEUED = 262_144; // TensorFlow's
const CANCEL_GRACE_MS = 5_000;
const READY_MS = 60_000;
/** A loop of awaited `schedule` calls lets the event loop turn that often. */
const LONGEST_TURN_MS = 1;

function checkCount(name: string, value: unknown, least: number): void {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
  if (!isCount || value < least)
    throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
}

/**
 * Runs exported functions on a cluster of workers. TensorFlow's ClusterCoordinator.
 *
 * `schedule` puts a function in line and gives a RemoteValue. It is run at least once: when
 * its worker dies it is run again elsewhere, before all others; its RemoteValue settles
 * once. The first error of any function is thrown once, by the next `schedule`, `join` or
 * `done`, after everything in flight has ended; what was in line is cancelled. Then the
 * cluster goes on.
 *
 * @typeParam M - the module of the functions: `typeof import('./tasks.js')`
 */
export class ClusterCoordinator<M extends object = any> implements AsyncDisposable {
  readonly strategy: Strategy;
  /**
   * The stop flag of the whole cluster: a `requestStop` anywhere stops everything. It
   * cannot be cleared.
   */
  readonly coordinator: Coordinator;
  readonly #retries: number;
  readonly #queue: ClosureQueue<Closure>;
  readonly #engine: Engine;
  readonly #functions: Functions;
  readonly #inFlight = new Set<Closure>();
  readonly #datasets: Datasets;
  /** `schedule` calls that look for their function: what is called later waits for them. */
  #looking: Promise<void> | undefined;
  /** Why no worker will come any more. */
  #failure: Error | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;
  readonly #onChange = new Set<() => void>();
  #turnBegan = 0;
  #turn: Promise<void> | undefined;
  /** Calls that wait for something. */
  #waiting = 0;
  #isNeeded = true;

  /** @throws TypeError, RangeError; what starting a worker throws */
  constructor(strategy: Strategy, options?: ClusterCoordinatorOptions) {
    if (typeof (strategy as Partial<Strategy> | null)?.connect !== 'function') {
      throw invalidType('strategy', 'a LocalStrategy or a NatsStrategy', strategy);
    }
    const given = checkOptions('options', options) as ClusterCoordinatorOptions;
    const {
      maxQueued = MAX_QUEUED,
      retries = Number.POSITIVE_INFINITY,
      cancelGraceMs = CANCEL_GRACE_MS,
    } = given;
    checkCount('options.maxQueued', maxQueued, 1);
    checkCount('options.retries', retries, 0);
    checkDuration('options.cancelGraceMs', cancelGraceMs);
    this.strategy = strategy;
    this.#retries = retries;
    this.#functions = new Functions(strategy.module);
    this.coordinator = new Coordinator({ name: 'cluster' });
    (Attachment.behind(this.coordinator) as Attachment).refuseClear =
      'The coordinator of a cluster cannot be cleared: make a new ClusterCoordinator';
    this.#queue = new ClosureQueue<Closure>({
      maxQueued,
      onWork: () => this.#engine.wake(),
      cancelled: (cause) =>
        cause instanceof CancelledError
          ? cause
          : new CancelledError('Another function has failed: please reschedule', { cause }),
    });
    this.#datasets = new Datasets(
      this,
      () => this.#engine.indexes,
      (closure, worker) => this.#queue.putTagged(closure, worker),
      () => this.#changed(),
    );
    this.#engine = strategy.connect(this.#host(cancelGraceMs));
    this.coordinator.signal.addEventListener('abort', () => this.#onStop());
    this.#updateNeeded();
  }

  /** The workers, those that are stuck included. */
  get workers(): WorkerInfo[] {
    return this.#engine.workers;
  }

  /**
   * Puts a function in line. Resolves at once while there is room. The arguments are
   * copied here and now.
   *
   * @param fn - an export of the strategy's module, or its name
   * @param args - its arguments; PerWorkerValues become those of the worker that runs it
   * @throws (rejects) TypeError: no export; InvalidArgumentError: a RemoteValue among the
   *   arguments; the first error of a function, of which nobody knows yet; CancelledError:
   *   the cluster was stopped; FailedPreconditionError: it is closed; UnavailableError: no
   *   worker will come; DeadlineExceededError, or the reason of `signal`: no room meanwhile
   */
  schedule<F extends AnyFunction>(
    fn: F,
    ...rest: ScheduleArgs<Parameters<F>>
  ): Promise<RemoteValue<Result<F>>>;
  schedule<K extends FunctionNames<M>>(
    name: K,
    ...rest: ScheduleArgs<Parameters<Named<M, K>>>
  ): Promise<RemoteValue<Result<Named<M, K>>>>;
  schedule(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: ScheduleOptions]
  ): Promise<RemoteValue<any>> {
    try {
      checkFunctionOrName(fn);
      const { signal, timeoutMs = Number.POSITIVE_INFINITY } = checkOptions('options', options);
      checkDuration('options.timeoutMs', timeoutMs);
      if (signal !== undefined) checkSignal('options.signal', signal);
      if (signal?.aborted) return Promise.reject(signal.reason);
      const name = typeof fn === 'string' ? this.#checkName(fn) : this.#functions.known(fn);
      const call = makeCall(name ?? '', args, this);
      if (name === undefined || call.perWorker !== undefined || this.#looking !== undefined) {
        return this.#scheduleLater(fn, call, signal, timeoutMs);
      }
      return this.#put(call, signal, timeoutMs);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Resolves when everything that was scheduled has ended.
   *
   * @throws (rejects) the first error of a function, once; as `schedule`
   */
  join(): Promise<void> {
    return this.#wait(this.#afterLooking(() => this.#queue.join()));
  }

  /**
   * Whether everything that was scheduled has ended. Waits only if something has failed, or
   * if it is not yet known what was scheduled.
   *
   * @throws (rejects) the first error of a function, once; as `schedule`
   */
  done(): Promise<boolean> {
    return this.#wait(this.#afterLooking(() => this.#queue.done()));
  }

  /**
   * A copy of the structure (arrays, plain objects, Maps, Sets) with the values in place of
   * its RemoteValues.
   *
   * @throws (rejects) with what the first of them to fail comes to
   */
  fetch<T>(structure: T): Promise<Fetched<T>> {
    return this.#wait(fetchAll(structure)) as Promise<Fetched<T>>;
  }

  /**
   * A data set that each worker makes for itself, by calling `datasetFn`, an export of the
   * module; also a worker that takes the place of another, before it takes work. An error
   * there is a ClosureInputError of the functions that use it.
   */
  createPerWorkerDataset<T>(
    datasetFn: ((...args: any[]) => DatasetOf<T>) | string,
    args?: readonly unknown[],
  ): PerWorkerDataset<T> {
    checkFunctionOrName(datasetFn);
    const { args: given, perWorker } = makeCall('', args, this);
    if (perWorker !== undefined) {
      throw new InvalidArgumentError('A data set cannot be made of PerWorkerValues');
    }
    const name = async (): Promise<string> =>
      typeof datasetFn === 'string' ? datasetFn : await this.#functions.find(datasetFn);
    return this.#datasets.create<T>(name, given);
  }

  /**
   * Resolves when every worker can take work. Never hangs.
   *
   * @throws (rejects) ClusterNotReadyError after `timeoutMs` (60,000), or at once when no
   *   worker will come: its `report` says who blocks, and why; the reason of `signal`
   */
  async ready(options?: ReadyOptions): Promise<void> {
    const { timeoutMs = READY_MS, signal, onProgress } = checkOptions('options', options);
    checkDuration('options.timeoutMs', timeoutMs);
    if (signal !== undefined) checkSignal('options.signal', signal);
    if (onProgress !== undefined) checkFunction('options.onProgress', onProgress);
    signal?.throwIfAborted();
    await this.#wait(
      whenReady({
        report: () => {
          const report = this.#engine.report();
          // What workers do not know of yet they have not made.
          return this.#datasets.isDefining ? { ...report, ready: false } : report;
        },
        isHopeless: () => this.#whyHopeless(),
        changes: this.#onChange,
        timeoutMs,
        signal,
        onProgress,
      }),
    );
  }

  /**
   * Ends the workers. What is in line is cancelled, what runs is asked to end and has
   * `cancelGraceMs` for it; every RemoteValue is settled. Twice is harmless.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#wait(this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #host(cancelGraceMs: number): StrategyHost {
    return {
      coordinator: this.coordinator,
      cancelGraceMs,
      take: () => {
        const closure = this.#queue.take();
        if (closure !== undefined) this.#inFlight.add(closure);
        return closure;
      },
      takeTagged: (worker) => this.#queue.takeTagged(worker),
      prepare: (worker) => {
        while (this.#queue.takeTagged(worker) !== undefined);
        this.#datasets.prepareAll(worker);
      },
      ended: (closure, outcome) => this.#onEnded(closure, outcome),
      lost: (closure, wasStarted, cause) => this.#onLost(closure, wasStarted, cause),
      changed: () => this.#changed(),
      failed: (error) => this.#onFailed(error),
    };
  }

  /** Why no worker will ever be ready. */
  #whyHopeless(): { why: string; cause: unknown } | undefined {
    if (this.#failure !== undefined) {
      return { why: this.#failure.message, cause: this.#failure.cause ?? this.#failure };
    }
    if (this.#isClosed) return { why: 'the cluster is closed', cause: undefined };
    if (!this.coordinator.shouldStop()) return undefined;
    return { why: 'the cluster was stopped', cause: this.coordinator.stopRecord?.error };
  }

  #changed(): void {
    for (const look of this.#onChange) look();
  }

  /** Resolves when the predicate holds; it is asked whenever something about workers changes. */
  #until(predicate: () => boolean): Promise<void> {
    if (predicate()) return Promise.resolve();
    return this.#wait(
      new Promise((resolve) => {
        const look = (): void => {
          if (!predicate()) return;
          this.#onChange.delete(look);
          resolve();
        };
        this.#onChange.add(look);
      }),
    );
  }

  /** Workers keep the program alive while it waits for something. */
  #updateNeeded(): void {
    const needed = this.#waiting > 0 || this.#inFlight.size > 0 || this.#queue.queued > 0;
    if (needed === this.#isNeeded) return;
    this.#isNeeded = needed;
    this.#engine.setNeeded(needed);
  }

  async #wait<T>(promise: Promise<T>): Promise<T> {
    this.#waiting += 1;
    this.#updateNeeded();
    try {
      return await promise;
    } finally {
      this.#waiting -= 1;
      this.#updateNeeded();
    }
  }

  // ---------------------------------------------------------------- schedule

  /** Undefined: no worker has told yet which there are. */
  #checkName(name: string): string | undefined {
    const { functions } = this.#engine;
    if (functions === undefined) return undefined;
    this.#functions.checkName(name, functions);
    return name;
  }

  /** In the order of calls, as soon as it is known what is called. */
  async #scheduleLater(
    fn: AnyFunction | string,
    call: Call,
    signal: AbortSignal | undefined,
    timeoutMs: number,
  ): Promise<RemoteValue<unknown>> {
    const began = performance.now();
    const before = this.#looking;
    const found = this.#find(fn, call.perWorker === undefined ? undefined : this.#datasets.defined);
    const tooLate = (): Error => deadlineExceeded(typeof fn === 'string' ? fn : fn.name, timeoutMs);
    found.catch(() => {}); // it may be refused before its turn has come
    const enter = async (): Promise<{ remote: Promise<RemoteValue<unknown>> }> => {
      await before;
      const name = await found;
      signal?.throwIfAborted();
      const left = timeoutMs - (performance.now() - began);
      if (left <= 0) throw tooLate();
      return { remote: this.#put({ ...call, name }, signal, left, timeoutMs) };
    };
    const entered = enter();
    const looking = entered.then(
      () => {},
      () => {},
    );
    this.#looking = looking;
    void looking.then(() => {
      if (this.#looking === looking) this.#looking = undefined;
    });
    const { remote } = await inTime(entered, signal, timeoutMs, tooLate);
    return remote;
  }

  async #find(fn: AnyFunction | string, defined: Promise<void> | undefined): Promise<string> {
    let name: string | undefined;
    if (typeof fn === 'function') {
      name = (await this.#orOver(this.#functions.find(fn))) ?? fn.name; // the queue says so
    } else {
      await this.#until(() => this.#engine.functions !== undefined || this.#isOver);
      name = this.#checkName(fn) ?? fn; // no worker will come: the queue says so
    }
    await defined;
    return name;
  }

  /** Undefined when the cluster is over before; its module may never have been imported. */
  #orOver<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#onChange.delete(look);
        settle();
      };
      const look = (): void => {
        if (this.#isOver) end(() => resolve(undefined));
      };
      this.#onChange.add(look);
      promise.then(
        (value) => end(() => resolve(value)),
        (error: unknown) => end(() => reject(error as Error)),
      );
      look();
    });
  }

  #afterLooking<T>(call: () => Promise<T>): Promise<T> {
    return this.#looking === undefined || this.#isOver ? call() : this.#looking.then(call);
  }

  get #isOver(): boolean {
    return this.#failure !== undefined || this.#isClosed || this.coordinator.shouldStop();
  }

  #put(
    call: Call,
    signal: AbortSignal | undefined,
    leftMs: number,
    timeoutMs: number = leftMs,
  ): Promise<RemoteValue<unknown>> {
    let settle: Settle | undefined;
    const remote = new RemoteValue<unknown>((own) => {
      settle = own;
    });
    const closure = new Closure(call, settle as Settle);
    if (signal !== undefined || leftMs !== Number.POSITIVE_INFINITY) {
      this.#limit(closure, signal, leftMs, timeoutMs);
    }
    const room = this.#queue.put(closure);
    this.#updateNeeded();
    if (room === undefined) return this.#fairly(remote);
    return this.#wait(
      room.then(
        () => remote,
        (error: unknown) => {
          closure.onSettled?.();
          throw error;
        },
      ),
    );
  }

  /** A loop of awaited calls is made of microtasks, in which no result would ever arrive. */
  #fairly<T>(value: T): Promise<T> {
    if (this.#turn === undefined) {
      this.#turnBegan = performance.now();
      this.#turn = turn().then(() => {
        this.#turn = undefined;
      });
    } else if (performance.now() - this.#turnBegan > LONGEST_TURN_MS) {
      return this.#turn.then(() => value);
    }
    return Promise.resolve(value);
  }

  /** Its deadline, and its caller's signal. */
  #limit(
    closure: Closure,
    signal: AbortSignal | undefined,
    leftMs: number,
    timeoutMs: number,
  ): void {
    const { name } = closure.work as Call;
    const timer = new Timer(leftMs, () => {
      this.#decide(closure, { state: 'failed', value: deadlineExceeded(name, timeoutMs) });
    });
    const onAbort = (): void => {
      this.#decide(closure, { state: 'cancelled', value: signal?.reason });
    };
    if (signal !== undefined) addAbortListener(signal, onAbort);
    closure.onSettled = () => {
      timer.clear();
      if (signal !== undefined) removeAbortListener(signal, onAbort);
    };
  }

  /** It comes to this, wherever it is. If it runs, its run is asked to end. */
  #decide(closure: Closure, outcome: Outcome): void {
    const { state, value } = outcome;
    if (closure.place === 'in-flight') {
      closure.decided = outcome;
      closure.settle(state, value);
      if (state === 'failed' && this.#queue.report(value)) this.#cancelOthers(value);
      this.#engine.cancel(closure, { reason: value, replace: true });
    } else if (closure.place === 'queued') {
      closure.settle(state, value);
      if (state === 'failed') {
        if (this.#queue.failQueued(closure, value)) this.#cancelOthers(value);
      } else this.#queue.remove(closure);
    } else this.#queue.remove(closure, value); // it waits for room: its call rejects
    this.#updateNeeded();
  }

  // ---------------------------------------------------------------- what becomes of it

  #onEnded(closure: Closure, { state, value }: Outcome): void {
    if (!this.#inFlight.delete(closure)) return; // the cluster has failed meanwhile
    if (closure.decided !== undefined || state !== 'failed') {
      closure.settle(state, value);
      this.#queue.end(closure);
    } else if (this.#isEcho(value)) {
      closure.settle('cancelled', this.#stopError());
      this.#queue.end(closure);
    } else if (isAbort(value) && (this.#queue.hasFailed || this.#isClosed)) {
      closure.settle('cancelled', value); // it was asked to end
      this.#queue.end(closure);
    } else {
      closure.settle('failed', value);
      if (this.#queue.fail(closure, value)) this.#cancelOthers(value);
    }
    this.#afterFlight();
  }

  #onLost(closure: Closure, wasStarted: boolean, cause: unknown): void {
    if (!this.#inFlight.delete(closure)) return;
    if (closure.decided !== undefined) {
      this.#queue.end(closure);
      this.#afterFlight();
      return;
    }
    if (wasStarted) closure.attempts += 1;
    const { name } = closure.work as Call;
    let why: string | undefined;
    // Without a cause it was taken back, because something else has failed: it is cancelled.
    if (closure.isMoved && cause !== undefined)
      why = `The arguments of '${name}' were moved to a worker that is lost`;
    else if (closure.attempts > this.#retries) {
      why = `'${name}' was started ${closure.attempts} times, and its worker was lost each time`;
    }
    if (why === undefined) this.#queue.putBack(closure);
    else {
      const error = new UnavailableError(why, { cause });
      closure.settle('failed', error);
      if (this.#queue.fail(closure, error)) this.#cancelOthers(error);
    }
    this.#afterFlight();
  }

  #afterFlight(): void {
    this.#updateNeeded();
    if (this.#inFlight.size === 0) this.#changed();
  }

  /** What runs sees it by its signal, and may go on; what was not started never will be. */
  #cancelOthers(cause: unknown): void {
    const reason = new CancelledError('Another function has failed', { cause });
    for (const closure of this.#inFlight) {
      if (closure.decided === undefined) this.#engine.cancel(closure, { reason, replace: false });
    }
  }

  /** Nothing gets in any more; what runs is asked to end, and then made to. */
  #stopAll(error: unknown, dropped: CancelledError, reason: unknown): void {
    this.#queue.close(error, dropped);
    for (const closure of this.#inFlight) {
      this.#engine.cancel(closure, { reason, replace: true });
    }
    this.#updateNeeded();
    this.#changed();
  }

  #stopError(): CancelledError {
    const record = this.coordinator.stopRecord;
    const options = record?.error === undefined ? {} : { cause: record.error };
    return new CancelledError('The cluster was stopped', options);
  }

  /** What a function throws because the cluster was stopped is no failure of its own. */
  #isEcho(error: unknown): boolean {
    const record = this.coordinator.stopRecord;
    if (record === undefined) return false;
    return isAbort(error) || Object.is(error, record.error);
  }

  #onStop(): void {
    const error = this.#stopError();
    this.#stopAll(error, error, this.coordinator.signal.reason);
  }

  #onFailed(error: Error): void {
    this.#failure = error;
    // A strategy may find out before it is even connected.
    queueMicrotask(() => {
      this.#queue.close(error, error);
      for (const closure of this.#inFlight) {
        this.#inFlight.delete(closure);
        closure.settle('failed', error);
        this.#queue.end(closure);
      }
      this.#updateNeeded();
      this.#changed();
    });
  }

  async #close(): Promise<void> {
    this.#isClosed = true; // `#closing` is not there yet, when those who wait are told
    const dropped = new CancelledError('The cluster was closed');
    this.#stopAll(new FailedPreconditionError('The cluster is closed'), dropped, dropped);
    await this.#until(() => this.#inFlight.size === 0);
    await this.#engine.close();
    this.coordinator.requestStop();
  }
}

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);

/** Any iterable, also one that a promise resolves to. */
export type DatasetOf<T> =
  | Iterable<T>
  | AsyncIterable<T>
  | PromiseLike<Iterable<T> | AsyncIterable<T>>;

const deadlineExceeded = (name: string, timeoutMs: number): Error =>
  new DeadlineExceededError(`The function '${name}' had not ended after ${timeoutMs} ms`);

/** Rejects when it is too late, whatever becomes of the promise. */
function inTime<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  timeoutMs: number,
  tooLate: () => Error,
): Promise<T> {
  if (signal === undefined && timeoutMs === Number.POSITIVE_INFINITY) return promise;
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      timer.clear();
      if (signal !== undefined) removeAbortListener(signal, onAbort);
      settle();
    };
    const onAbort = (): void => end(() => reject(signal?.reason as Error));
    const timer = new Timer(timeoutMs, () => end(() => reject(tooLate())));
    if (signal !== undefined) addAbortListener(signal, onAbort);
    promise.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error as Error)),
    );
  });
}
