/** The public class: what users call, made of the parts that know how. */

import {
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  invalidType,
  outOfRange,
} from '../base/arguments.ts';
import { Attachment } from '../coordinator/attachment.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import { CancelledError, FailedPreconditionError, InvalidArgumentError } from '../errors/errors.ts';
import type { ReadinessReport } from '../errors/readiness-report.ts';
import { makeCall } from './closures/call.ts';
import { ChangeListeners } from './closures/change-listeners.ts';
import { type Call, Closure, type OutcomeCounts } from './closures/closure.ts';
import { ClosureQueue } from './closures/closure-queue.ts';
import { ClosureRules } from './closures/closure-rules.ts';
import { Datasets } from './closures/datasets.ts';
import { EventLoopYield } from './closures/event-loop-yield.ts';
import { type AnyFunction, checkFunctionOrName, ModuleExports } from './closures/module-exports.ts';
import { NameResolver } from './closures/name-resolver.ts';
import type { PerWorkerDataset } from './closures/per-worker.ts';
import { whenReady } from './closures/readiness.ts';
import { RemoteValue, type Settle } from './closures/remote-value.ts';
import type { Engine, Strategy, StrategyHost, WorkerInfo } from './closures/strategy.ts';
import { deadlineExceeded, inTime, type Limits, limit } from './closures/time-limits.ts';
import { type Fetched, fetchAll } from './fetch-all.ts';
import type {
  DatasetOf,
  FunctionNames,
  Named,
  Result,
  ScheduleArgs,
  ScheduleOptions,
} from './signatures.ts';

export type ClusterCoordinatorOptions = {
  /** So many closures wait for workers; `schedule` waits while there are more. */
  maxQueued?: number | undefined;
  /** How often a function is run again after its worker has died. */
  retries?: number | undefined;
  /** How long what was cancelled may go on; then its worker is replaced. */
  cancelGraceMs?: number | undefined;
};

/** Numbers of functions, since the cluster was made. */
export type ClusterStats = {
  /** In line. */
  queued: number;
  /** At a worker. */
  inFlight: number;
  /** With a result; with an error; not run to their end. */
  completed: number;
  failed: number;
  cancelled: number;
  /** Runs again of those whose worker was lost. */
  retried: number;
  /** What the strategy has counted: `restarts` of workers; on NATS nodes, connections and more. */
  engine: Record<string, number>;
};

export type ReadyOptions = {
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((report: ReadinessReport) => void) | undefined;
};

/** The strategies that have a cluster. */
const used = new WeakSet<Strategy>();

const MAX_QUEUED = 262_144; // TensorFlow's
const CANCEL_GRACE_MS = 5_000;
const READY_MS = 60_000;

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
  readonly #queue: ClosureQueue<Closure>;
  readonly #rules: ClosureRules;
  readonly #engine: Engine;
  readonly #resolver: NameResolver;
  readonly #functions: ModuleExports;
  readonly #datasets: Datasets;
  readonly #counts: OutcomeCounts = { ready: 0, failed: 0, cancelled: 0 };
  readonly #changes = new ChangeListeners();
  readonly #yielding = new EventLoopYield();
  #closing: Promise<void> | undefined;
  /** Calls that wait for something. */
  #waiting = 0;
  #isNeeded = true;

  /**
   * @throws TypeError, RangeError; FailedPreconditionError: another has that strategy; what
   *   starting a worker throws
   */
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
    if (used.has(strategy)) {
      throw new FailedPreconditionError(
        'A strategy is used by one ClusterCoordinator, and this one has been: make a new one',
      );
    }
    this.strategy = strategy;
    this.#functions = new ModuleExports(strategy.module);
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
    this.#rules = new ClosureRules({
      queue: this.#queue,
      coordinator: this.coordinator,
      retries,
      cancel: (closure, cancellation) => this.#engine.cancel(closure, cancellation),
      onLeft: () => this.#updateNeeded(),
      onChange: () => this.#changes.tell(),
    });
    this.#resolver = new NameResolver({
      functions: this.#functions,
      there: () => this.#engine.functions,
      changes: this.#changes,
      isOver: () => this.#rules.isOver,
      wait: (promise) => this.#wait(promise),
    });
    this.#datasets = new Datasets(
      this,
      () => this.#engine.indexes,
      (closure, worker) => this.#queue.putTagged(closure, worker),
      () => this.#changes.tell(),
    );
    this.#engine = strategy.connect(this.#host(cancelGraceMs));
    used.add(strategy);
    this.coordinator.signal.addEventListener('abort', () => this.#rules.stop());
    this.#updateNeeded();
  }

  /** The workers, those that are stuck included. */
  get workers(): WorkerInfo[] {
    return this.#engine.workers;
  }

  /** What there is, and what has been, as plain data: for dashboards and logs. */
  stats(): ClusterStats {
    const { ready: completed, failed, cancelled } = this.#counts;
    return {
      queued: this.#queue.queued,
      inFlight: this.#rules.inFlight,
      completed,
      failed,
      cancelled,
      retried: this.#rules.retried,
      engine: this.#engine.stats(),
    };
  }

  /**
   * Puts a function in line. Resolves at once while there is room. The arguments are
   * copied here and now, or taken when it is in line, if something is moved (`transfer`).
   *
   * @param fn - an export of the strategy's module, or its name
   * @param args - its arguments; PerWorkerValues become those of the worker that runs it
   * @throws (rejects) TypeError: no export; InvalidArgumentError: a RemoteValue among the
   *   arguments; the first error of a function, of which nobody knows yet; CancelledError:
   *   the cluster was stopped; FailedPreconditionError: it is closed; UnavailableError: no
   *   worker will come; DeadlineExceededError, or the reason of `signal`: it has not got in
   *   line meanwhile, as its function had to be looked up, or there was no room
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
      const limits = { signal, timeoutMs, leftMs: timeoutMs };
      const name = this.#resolver.known(fn);
      const call = makeCall(name ?? '', args, this, this.#sharesMemory);
      if (name === undefined || call.perWorker !== undefined || this.#resolver.arePending) {
        return this.#scheduleLater(fn, call, limits);
      }
      return this.#put(call, limits);
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
    return this.#wait(this.#resolver.after(() => this.#queue.join()));
  }

  /**
   * Whether everything that was scheduled has ended. Waits only if something has failed, or
   * if it is not yet known what was scheduled.
   *
   * @throws (rejects) the first error of a function, once; as `schedule`
   */
  done(): Promise<boolean> {
    return this.#wait(this.#resolver.after(() => this.#queue.done()));
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
    const call = makeCall('', args, this, this.#sharesMemory);
    if (call.perWorker !== undefined) {
      throw new InvalidArgumentError('A data set cannot be made of PerWorkerValues');
    }
    const { args: given } = call.take?.() ?? call;
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
        isHopeless: () => this.#rules.whyHopeless(),
        changes: this.#changes,
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

  get #sharesMemory(): boolean {
    return this.#engine.sharesMemory === true;
  }

  #host(cancelGraceMs: number): StrategyHost {
    return {
      coordinator: this.coordinator,
      cancelGraceMs,
      take: () => this.#rules.take(),
      takeTagged: (worker) => this.#queue.takeTagged(worker),
      hasTagged: () => this.#queue.hasTagged,
      prepare: (worker) => {
        while (this.#queue.takeTagged(worker) !== undefined);
        this.#datasets.prepareAll(worker);
      },
      ended: (closure, outcome) => this.#rules.ended(closure, outcome),
      returned: (closure, wasStarted, cause) => this.#rules.returned(closure, wasStarted, cause),
      changed: () => this.#changes.tell(),
      failed: (error) => this.#rules.fail(error),
    };
  }

  /** Workers keep the program alive while it waits for something. */
  #updateNeeded(): void {
    const needed = this.#waiting > 0 || !this.#rules.isIdle || this.#queue.queued > 0;
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

  /** In the order of calls, as soon as it is known what is called. */
  async #scheduleLater(
    fn: AnyFunction | string,
    call: Call,
    limits: Limits,
  ): Promise<RemoteValue<unknown>> {
    const { signal, timeoutMs } = limits;
    const began = performance.now();
    const tooLate = (): Error => deadlineExceeded(typeof fn === 'string' ? fn : fn.name, timeoutMs);
    const defined = call.perWorker === undefined ? undefined : this.#datasets.defined;
    const inOwnTime = <T>(promise: Promise<T>): Promise<T> => inTime(promise, limits, tooLate);
    const entered = this.#resolver.inTurn(fn, defined, inOwnTime, (name) => {
      signal?.throwIfAborted();
      const leftMs = timeoutMs - (performance.now() - began);
      if (leftMs <= 0) throw tooLate();
      // Not the promise itself: calls that come later wait for their turn, not for room.
      return { remote: this.#put({ ...call, name }, { ...limits, leftMs }) };
    });
    const { remote } = await inOwnTime(entered);
    return remote;
  }

  #put(call: Call, limits: Limits): Promise<RemoteValue<unknown>> {
    let settle: Settle | undefined;
    const remote = new RemoteValue<unknown>((own) => {
      settle = own;
    });
    const closure = new Closure(call, settle, this.#counts);
    limit(closure, limits, (own, outcome) => this.#rules.decide(own, outcome));
    const room = this.#queue.put(closure);
    this.#updateNeeded();
    if (room === undefined) return this.#yielding.give(remote);
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

  async #close(): Promise<void> {
    this.#rules.close();
    await this.#wait(this.#changes.until(() => this.#rules.isIdle));
    await this.#engine.close();
    this.coordinator.requestStop();
  }
}
