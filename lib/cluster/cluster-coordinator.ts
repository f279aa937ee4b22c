/** The public class ClusterCoordinator: checks arguments and connects the parts in closures/. */

import { EventEmitter } from 'node:events';
import {
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  invalidType,
} from '../base/arguments.ts';
import { within } from '../base/timer.ts';
import { EventLoopYield } from '../base/turn.ts';
import { attachmentOf } from '../coordinator/attachment.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import { beginClosureEvents } from '../coordinator/timeline/closure-events.ts';
import {
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
} from '../errors/errors.ts';
import type { ReadinessReport } from '../errors/readiness-report.ts';
import {
  checkCallOptions,
  checkCount,
  checkWaitOptions,
  type WaitOptions,
} from './call-options.ts';
import { makeCall } from './closures/call.ts';
import { ChangeListeners } from './closures/change-listeners.ts';
import { type Call, Closure, type ClosureOptions, type ClosureOwner } from './closures/closure.ts';
import { ClosureQueue } from './closures/closure-queue.ts';
import { ClosureRules, cancelledBy } from './closures/closure-rules.ts';
import { Datasets } from './closures/datasets.ts';
import { type AnyFunction, checkFunctionOrName, ModuleExports } from './closures/module-exports.ts';
import { NameResolver } from './closures/name-resolver.ts';
import type { PerWorkerDataset } from './closures/per-worker.ts';
import { whenReady } from './closures/readiness.ts';
import { RemoteValue } from './closures/remote-value.ts';
import type { Engine, Strategy, WorkerInfo } from './closures/strategy.ts';
import { deadlineExceeded, inTime, type Limits, limit } from './closures/time-limits.ts';
import { giveFailure } from './closures/unseen-functions.ts';
import type { ClusterEvents } from './cluster-events.ts';
import { type Fetched, fetchAll } from './fetch-all.ts';
import { FunctionStatistics, type FunctionStats } from './function-stats.ts';
import type {
  DatasetOf,
  FunctionNames,
  Named,
  Result,
  ScheduleArgs,
  ScheduleOptions,
} from './signatures.ts';
import { clusterCoordinator } from './worker/coordinator-of-cluster.ts';

export type ClusterCoordinatorOptions = {
  /** How many closures may be queued (262,144, as TensorFlow); `schedule` waits for room. */
  maxQueued?: number | undefined;
  /**
   * How many bytes the arguments of queued closures may take (1 GiB, 1,073,741,824); `schedule`
   * waits for room. A single closure is queued however large it is. What is shared, and not copied,
   * does not count.
   */
  maxQueuedBytes?: number | undefined;
  /**
   * A coordinator whose stop stops this cluster. A stop of the cluster, or `close`, does not stop
   * it.
   */
  coordinator?: Coordinator | undefined;
  /** How often a function is run again after the death of a worker that was running it (3). */
  retries?: number | undefined;
  /** Milliseconds that a cancelled function may go on (5,000); then its worker is replaced. */
  cancelGraceMs?: number | undefined;
};

/** Counts of functions since the cluster was made. */
export type ClusterStats = {
  /** Waiting for a worker. */
  queued: number;
  /** Taken by a worker and not ended. */
  inFlight: number;
  /** Ended with a result; with an error; cancelled before their end. */
  completed: number;
  failed: number;
  cancelled: number;
  /** How often a function was run again because its worker was lost. */
  retried: number;
  /** About how many bytes the arguments of the queued functions take. */
  queuedBytes: number;
  /** By the name of the function. */
  functions: Record<string, FunctionStats>;
  /** The share of the workers' time in which functions ran (0 to 1). */
  utilization: number;
  /** Counters of the strategy: `restarts` of workers; on NATS also nodes, connections and more. */
  engine: Record<string, number>;
};

export type CloseOptions = {
  /** Milliseconds that what was called before has to end (0). */
  drainMs?: number | undefined;
};

/** The options of a call, with their defaults. */
type CheckedOptions = ClosureOptions & { limits: Limits };

export type ReadyOptions = {
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((report: ReadinessReport) => void) | undefined;
};

/** The strategies that have a ClusterCoordinator. */
const used = new WeakSet<Strategy>();

const MAX_QUEUED = 262_144; // as in TensorFlow
const MAX_QUEUED_BYTES = 2 ** 30;
const RETRIES = 3;
const CANCEL_GRACE_MS = 5_000;
const READY_MS = 60_000;

/** A name of the function for messages, while the name of its export may be unknown. */
const shownName = (fn: AnyFunction | string): string =>
  typeof fn === 'string' ? fn : fn.name || '(anonymous)';

const OPTIONS = [
  'maxQueued',
  'maxQueuedBytes',
  'retries',
  'cancelGraceMs',
  'coordinator',
] satisfies (keyof ClusterCoordinatorOptions)[];

/**
 * Runs exported functions on a cluster of workers. TensorFlow's ClusterCoordinator.
 *
 * `run` calls a function and returns a promise of its result; its error is its caller's alone.
 *
 * `schedule` queues a function and returns a RemoteValue, which settles once. The first error of
 * any scheduled function cancels the queued ones and is thrown once, by the next `schedule`, `join`
 * or `done`, after all running scheduled functions have ended. Then the cluster goes on.
 *
 * A function is run at least once: when its worker dies while it runs, it is run again, after what
 * is queued, and alone on its worker, at most `retries` times.
 *
 * Its events are ClusterEvents.
 *
 * @typeParam M - the module of the functions: `typeof import('./tasks.js')`
 */
export class ClusterCoordinator<M extends object = any>
  extends EventEmitter<ClusterEvents>
  implements AsyncDisposable
{
  readonly strategy: Strategy;
  /**
   * The stop flag of the whole cluster: `requestStop` in any worker stops everything. It cannot
   * be cleared.
   */
  readonly coordinator: Coordinator;
  readonly #queue: ClosureQueue<Closure>;
  readonly #rules: ClosureRules;
  readonly #engine: Engine;
  readonly #resolver: NameResolver;
  readonly #functions: ModuleExports;
  readonly #datasets: Datasets;
  readonly #retries: number;
  readonly #statistics = new FunctionStatistics();
  readonly #owner: ClosureOwner;
  /** Something was queued since the last event 'idle'. */
  #wasBusy = false;
  readonly #changes = new ChangeListeners();
  readonly #yielding = new EventLoopYield();
  #closing: Promise<void> | undefined;
  #drained: Promise<void> | undefined;
  /** The number of pending promises that users have. */
  #waiting = 0;
  /** The last argument of `Engine.setNeeded`. */
  #isNeeded = true;

  /**
   * @throws TypeError, RangeError; FailedPreconditionError: the strategy was used before; the
   *   error of starting a worker
   */
  constructor(strategy: Strategy, options?: ClusterCoordinatorOptions) {
    if (typeof (strategy as Partial<Strategy> | null)?.connect !== 'function') {
      throw invalidType('strategy', 'a LocalStrategy or a NatsStrategy', strategy);
    }
    super();
    const given = checkOptions('options', options, OPTIONS) as ClusterCoordinatorOptions;
    const {
      maxQueued = MAX_QUEUED,
      maxQueuedBytes = MAX_QUEUED_BYTES,
      retries = RETRIES,
      cancelGraceMs = CANCEL_GRACE_MS,
      coordinator: parent,
    } = given;
    checkCount('options.maxQueued', maxQueued, 1);
    checkCount('options.maxQueuedBytes', maxQueuedBytes, 1);
    checkCount('options.retries', retries, 0);
    checkDuration('options.cancelGraceMs', cancelGraceMs);
    if (parent !== undefined && !(parent instanceof Coordinator)) {
      throw invalidType('options.coordinator', 'an instance of Coordinator', parent);
    }
    if (used.has(strategy)) {
      throw new FailedPreconditionError(
        'This strategy already has a ClusterCoordinator: make a new strategy for each',
      );
    }
    this.strategy = strategy;
    this.#functions = new ModuleExports(strategy.module);
    this.coordinator = clusterCoordinator(undefined, parent);
    this.#retries = retries;
    this.#queue = new ClosureQueue<Closure>(maxQueued, maxQueuedBytes, {
      onWork: () => this.#engine.wake(),
      onFailure: cancelledBy,
    });
    const { coordinator } = this;
    this.#rules = new ClosureRules(
      { queue: this.#queue, coordinator, cancelGraceMs },
      {
        cancel: (closure, cancellation) => this.#engine.cancel(closure, cancellation),
        prepare: (worker) => this.#datasets.prepareAll(worker),
        onLeft: () => {
          this.#updateNeeded();
          this.#checkIdle();
        },
        onChange: () => {
          this.#changes.notify();
          queueMicrotask(() => this.#statistics.setCapacity(this.#engine.capacity));
        },
        onRun: (closure, microseconds) => this.#statistics.onRun(closure, microseconds),
        onRetry: (closure, attempt, cause) => {
          this.#statistics.onRetry(closure);
          this.#tell('retry', { name: (closure.work as Call).name, attempt, cause });
        },
        onWorkerStarted: (worker) => this.#tell('workerStarted', worker),
        onWorkerLost: (worker, error) => this.#tell('workerLost', worker, error),
        onWorkerStuck: (worker) => this.#tell('workerStuck', worker),
      },
    );
    this.#owner = {
      events: beginClosureEvents(attachmentOf(this.coordinator)),
      onSettled: (closure, state) => this.#statistics.onSettled(closure, state),
      cancel: (closure, value) => this.#rules.decide(closure, { state: 'cancelled', value }),
    };
    this.#resolver = new NameResolver(this.#functions, this.#changes, {
      functionNames: () => this.#engine.functions,
      isOver: () => this.#rules.isOver,
      keepAlive: (promise) => this.#wait(promise),
    });
    this.#datasets = new Datasets(this, {
      workers: () => this.#engine.indexes,
      prepare: (closure, worker) => this.#queue.putTagged(closure, worker),
      onDefined: () => this.#changes.notify(),
    });
    this.#engine = strategy.connect(this.#rules);
    used.add(strategy);
    coordinator.signal.addEventListener('abort', () => this.#rules.stop());
    this.#updateNeeded();
  }

  /** The workers, including stuck ones. */
  get workers(): WorkerInfo[] {
    return this.#engine.workers;
  }

  /** Counts of functions, and the strategy's counters, as plain data for dashboards and logs. */
  stats(): ClusterStats {
    const { ready: completed, failed, cancelled } = this.#statistics.counts;
    return {
      queued: this.#queue.queued,
      inFlight: this.#queue.inFlight.size,
      completed,
      failed,
      cancelled,
      retried: this.#rules.retried,
      queuedBytes: this.#queue.queuedBytes,
      functions: this.#statistics.functions,
      utilization: this.#statistics.utilization(this.workers),
      engine: this.#engine.stats(),
    };
  }

  /**
   * Queues a function. Resolves at once while there is room. The arguments are copied during
   * the call; if `transfer` marks something in them as moved, they are taken when the function
   * is queued.
   *
   * @param fn - an export of the strategy's module, or its name
   * @param args - its arguments; PerWorkerValues become those of the worker that runs it
   * @throws (rejects) TypeError: not an export; DataCloneError: an argument that cannot be
   *   cloned; InvalidArgumentError: a RemoteValue among the arguments, or a
   *   SharedArrayBuffer where workers are no threads; the first error of a
   *   function, if no call has thrown it yet; CancelledError: the cluster was stopped;
   *   FailedPreconditionError: it is closed; UnavailableError: no worker will start any more;
   *   DeadlineExceededError, or the reason of `signal`: the function was not queued in time,
   *   because its name had to be looked up, or there was no room
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
    return this.#call(fn, args, options, false);
  }

  /**
   * Runs a function and resolves with its result: one call, one promise. Its error, deadline or
   * cancellation is told to the caller and to nobody else: nothing else is cancelled, and no
   * `schedule`, `join` or `done` throws it; nor is it cancelled by the error of a scheduled
   * function. Takes the arguments and options of `schedule`. `join` waits for it.
   *
   * @throws (rejects) what the function throws; the errors of the arguments and options that
   *   `schedule` throws; DeadlineExceededError, or the reason of `signal`, at any stage;
   *   CancelledError: the cluster was stopped or closed before the function has ended;
   *   FailedPreconditionError: it was closed before the call; UnavailableError: its workers have
   *   died too often, or no worker will start any more
   */
  run<F extends AnyFunction>(fn: F, ...rest: ScheduleArgs<Parameters<F>>): Promise<Result<F>>;
  run<K extends FunctionNames<M>>(
    name: K,
    ...rest: ScheduleArgs<Parameters<Named<M, K>>>
  ): Promise<Result<Named<M, K>>>;
  async run(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: ScheduleOptions]
  ): Promise<any> {
    const remote = await this.#call(fn, args, options, true);
    return await remote.fetch();
  }

  /**
   * Resolves when everything that was scheduled or run before has ended.
   *
   * @throws (rejects) the first error of a scheduled function, once; CancelledError,
   *   FailedPreconditionError, UnavailableError: as for `schedule`; DeadlineExceededError after
   *   `timeoutMs` (milliseconds, Infinity), or the reason of `signal`: then the functions go on
   */
  async join(options?: WaitOptions): Promise<void> {
    const limits = checkWaitOptions(options);
    const { signal, timeoutMs } = limits;
    signal?.throwIfAborted();
    const call = { hasLeft: false, leave: (_error: unknown): void => {} };
    const joined = this.#resolver.after(async () => {
      if (call.hasLeft) return;
      await this.#queue.join((leave) => {
        call.leave = leave;
      });
    });
    const tooLate = (): Error =>
      new DeadlineExceededError(
        `join() timed out after ${timeoutMs} ms (options.timeoutMs): ${this.#queue.queued} functions are queued, ${this.#queue.inFlight.size} have not ended`,
      );
    try {
      await this.#wait(inTime(joined, limits, tooLate));
    } catch (error) {
      // A join that nobody awaits must not receive a function's error, nor hold up later calls.
      call.hasLeft = true;
      call.leave(error);
      throw error;
    }
  }

  /**
   * Whether everything that was scheduled has ended. Waits only if a function has failed, or
   * while the name of a scheduled function is being looked up.
   *
   * @throws (rejects) the first error of a function, once; CancelledError,
   *   FailedPreconditionError, UnavailableError: as for `schedule`
   */
  done(): Promise<boolean> {
    return this.#wait(this.#resolver.after(() => this.#queue.done()));
  }

  /**
   * Resolves with a copy of the structure (arrays, plain objects, Maps, Sets), in which each
   * RemoteValue is replaced by its value.
   *
   * @throws (rejects) the error of the first RemoteValue to fail
   */
  fetch<T>(structure: T): Promise<Fetched<T>> {
    return this.#wait(fetchAll(structure)) as Promise<Fetched<T>>;
  }

  /**
   * A data set that each worker makes for itself, by calling `datasetFn`, an export of the
   * module. A worker that replaces another makes its own before it takes functions. If `datasetFn`
   * throws, the functions that use the data set fail with a ClosureInputError.
   */
  createPerWorkerDataset<T>(
    datasetFn: ((...args: any[]) => DatasetOf<T>) | string,
    args?: readonly unknown[],
  ): PerWorkerDataset<T> {
    checkFunctionOrName(datasetFn);
    const call = makeCall(shownName(datasetFn), args, this, this.#sharesMemory);
    if (call.perWorker !== undefined) {
      throw new InvalidArgumentError(
        'The arguments of a data set function cannot be PerWorkerValues',
      );
    }
    const { args: given } = call.take?.() ?? call;
    const name = async (): Promise<string> =>
      typeof datasetFn === 'string' ? datasetFn : await this.#functions.find(datasetFn);
    return this.#datasets.create<T>(name, given);
  }

  /**
   * Resolves when every worker can take functions. Never hangs.
   *
   * @throws (rejects) ClusterNotReadyError after `timeoutMs` (60,000), or at once when no
   *   worker will start any more: its `report` names each worker that is not ready, with the
   *   cause; the reason of `signal`; the error that `onProgress` throws
   */
  async ready(options?: ReadyOptions): Promise<void> {
    const known = ['timeoutMs', 'signal', 'onProgress'];
    const { timeoutMs = READY_MS, signal, onProgress } = checkOptions('options', options, known);
    checkDuration('options.timeoutMs', timeoutMs);
    if (signal !== undefined) checkSignal('options.signal', signal);
    if (onProgress !== undefined) checkFunction('options.onProgress', onProgress);
    signal?.throwIfAborted();
    await this.#wait(
      whenReady({
        report: () => {
          const report = this.#engine.report();
          // A worker that was not sent a data set yet reports that it is ready.
          return this.#datasets.isDefining ? { ...report, ready: false } : report;
        },
        whyNever: () => this.#rules.whyNeverReady(),
        changes: this.#changes,
        timeoutMs,
        signal,
        onProgress,
      }),
    );
  }

  /**
   * Ends the workers. For `drainMs` milliseconds (0) what was called before may still end, and later
   * calls are refused; then queued functions are cancelled, and running functions are asked to end
   * and have `cancelGraceMs` for that. Every RemoteValue is settled. A second call does not drain
   * any longer: it waits for the first, or ends what that still drains if its own `drainMs` is over
   * before.
   *
   * @throws (rejects) TypeError, RangeError: the options
   */
  async close(options?: CloseOptions): Promise<void> {
    const { drainMs = 0 } = checkOptions('options', options, ['drainMs']);
    checkDuration('options.drainMs', drainMs);
    if (drainMs > 0) await this.#wait(this.#drain(drainMs));
    this.#closing ??= this.#close();
    await this.#wait(this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #sharesMemory(): boolean {
    return this.#engine.sharesMemory === true;
  }

  /** Workers keep the program alive while a promise is pending or a function has not ended. */
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
    } catch (error) {
      giveFailure(error);
      throw error;
    } finally {
      this.#waiting -= 1;
      this.#updateNeeded();
    }
  }

  #call(
    fn: AnyFunction | string,
    args: unknown,
    given: ScheduleOptions | undefined,
    isOwn: boolean,
  ): Promise<RemoteValue<unknown>> {
    try {
      checkFunctionOrName(fn);
      const options = { ...checkCallOptions(given, { retries: this.#retries }), isOwn };
      const { signal } = options.limits;
      if (signal?.aborted) return Promise.reject(signal.reason);
      const name = this.#resolver.known(fn);
      const call = makeCall(name ?? shownName(fn), args, this, this.#sharesMemory);
      if (name === undefined || call.perWorker !== undefined || this.#resolver.isBusy) {
        return this.#scheduleLater(fn, call, options);
      }
      return this.#put(call, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Queues a call when its name is known, its data sets are defined and earlier calls are queued.
   */
  async #scheduleLater(
    fn: AnyFunction | string,
    call: Call,
    options: CheckedOptions,
  ): Promise<RemoteValue<unknown>> {
    const { limits } = options;
    const { signal, timeoutMs } = limits;
    const began = performance.now();
    const tooLate = (): Error => deadlineExceeded(shownName(fn), timeoutMs);
    const defined = call.perWorker === undefined ? undefined : this.#datasets.defined;
    const inOwnTime = <T>(promise: Promise<T>): Promise<T> => inTime(promise, limits, tooLate);
    const entered = this.#resolver.inOrder(fn, defined, inOwnTime, (name) => {
      signal?.throwIfAborted();
      const leftMs = timeoutMs - (performance.now() - began);
      if (leftMs <= 0) throw tooLate();
      // `remote` is a promise that resolves when there is room. It is put in an object, so that
      // `entered`, for which later calls wait, does not wait for it.
      return {
        remote: this.#put({ ...call, name }, { ...options, limits: { ...limits, leftMs } }),
      };
    });
    const { remote } = await inOwnTime(entered);
    return remote;
  }

  #put(call: Call, { limits, ...options }: CheckedOptions): Promise<RemoteValue<unknown>> {
    let made: Closure | undefined;
    const remote = new RemoteValue<unknown>((settle) => {
      made = new Closure(call, settle, this.#owner, options);
      return made;
    });
    const closure = made as unknown as Closure;
    this.#wasBusy = true;
    limit(closure, limits, (own, outcome) => this.#rules.decide(own, outcome));
    const room = this.#queue.put(closure);
    this.#updateNeeded();
    if (room === undefined) {
      return options.isOwn ? Promise.resolve(remote) : this.#yielding.give(remote);
    }
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

  /** Resolves when nothing is left to run, when the cluster is over, or after `drainMs`. */
  async #drain(drainMs: number): Promise<void> {
    this.#drained ??= this.#resolver.after(async () => {
      this.#rules.drain();
      await this.#changes.until(() => this.#rules.isEmpty || this.#rules.isOver);
    });
    await within(drainMs, this.#drained, () => {});
  }

  /** Emits an event when the present call has ended: a listener that throws disturbs nothing. */
  #tell<K extends keyof ClusterEvents>(event: K, ...args: ClusterEvents[K]): void {
    if (this.listenerCount(event) === 0) return;
    queueMicrotask(() =>
      (this.emit as (name: K, ...what: ClusterEvents[K]) => boolean).call(this, event, ...args),
    );
  }

  #checkIdle(): void {
    if (!this.#rules.isEmpty) return;
    if (this.#drained !== undefined) this.#changes.notify();
    if (!this.#wasBusy) return;
    this.#wasBusy = false;
    this.#tell('idle');
  }

  async #close(): Promise<void> {
    this.#rules.close();
    await this.#wait(this.#changes.until(() => this.#rules.isIdle));
    await this.#engine.close();
    this.coordinator.requestStop();
  }
}
