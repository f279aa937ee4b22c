/** The public class ClusterCoordinator: checks arguments and connects the parts in closures/. */

import { EventEmitter } from 'node:events';
import { throwIfAborted } from '../base/abort-reason.ts';
import {
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  invalidType,
} from '../base/arguments.ts';
import { rejection } from '../base/callers-frames.ts';
import { showAs } from '../base/inspect.ts';
import { within } from '../base/timer.ts';
import { attachmentOf } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { counted } from '../coordinator/words.ts';
import { clusterClosed } from '../errors/cluster-closed.ts';
import {
  CancelledError,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
} from '../errors/errors.ts';
import { beginClosureEvents } from '../events/timeline/closure-events.ts';
import { checkWaitOptions, type WaitOptions } from '../pool/calls/call-options.ts';
import { Calls, shownName } from '../pool/calls/calls.ts';
import { map } from '../pool/calls/map.ts';
import type {
  CallOptions,
  DatasetOf,
  FunctionNames,
  ItemOf,
  Items,
  MapOptions,
  Mapped,
  MapResults,
  Named,
  OnError,
  Result,
  ScheduleArgs,
  ScheduleOptions,
} from '../pool/calls/signatures.ts';
import { argumentsOf, makeCall } from '../pool/queue/call.ts';
import { ChangeListeners } from '../pool/queue/change-listeners.ts';
import type { Closure } from '../pool/queue/closure.ts';
import { ClosureQueue } from '../pool/queue/closure-queue.ts';
import { ClosureRules, stopError } from '../pool/queue/closure-rules.ts';
import { Datasets } from '../pool/queue/datasets.ts';
import {
  type AnyFunction,
  checkFunctionOrName,
  ModuleExports,
} from '../pool/queue/module-exports.ts';
import { NameResolver } from '../pool/queue/name-resolver.ts';
import type { PerWorkerDataset } from '../pool/queue/per-worker.ts';
import { type NeverReady, whenReady } from '../pool/queue/readiness.ts';
import type { RemoteValue } from '../pool/queue/remote-value.ts';
import type { Engine, EngineEvent, Strategy, WorkerInfo } from '../pool/queue/strategy.ts';
import { inTime } from '../pool/queue/time-limits.ts';
import { giveFailure } from '../pool/queue/unseen-functions.ts';
import { clusterCoordinator } from '../pool/worker/coordinator-of-cluster.ts';
import { moduleFingerprint } from '../pool/worker/module/fingerprint.ts';
import { refuseOwnModule } from '../pool/worker/module/own-module.ts';
import { CallGroup } from './call-group.ts';
import type { ClusterEvents, Retry } from './cluster-events.ts';
import {
  type CloseOptions,
  type ClusterCoordinatorOptions,
  type ClusterStats,
  checkClusterOptions,
  type ReadyOptions,
} from './cluster-options.ts';
import { type Fetched, fetchAll } from './fetch-all.ts';
import { FunctionStatistics } from './function-stats.ts';
import { NoWorkerWarning } from './no-worker.ts';
import { resize } from './resize.ts';
import { ClusterVariables } from './variables/cluster-variables.ts';
import type { Variable, VariableValue, Widened } from './variables/variable.ts';
import { checkVariableOptions, type VariableOptions } from './variables/variable-options.ts';
import { type VariableStore, variablesOf } from './variables/variable-store.ts';
import { publishWorker } from './worker-channel.ts';

/** The strategies that have a ClusterCoordinator. */
const used = new WeakSet<Strategy>();

const READY_MS = 60_000;

/**
 * Closes the cluster at the coordinator's stop, when nothing is left to run, or after `drainMs`: until
 * then it takes calls. `close` before takes the hook away.
 */
export let closeAtStop: (
  cluster: ClusterCoordinator,
  coordinator: Coordinator,
  drainMs: number,
) => void;

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
 * @example
 * ```js
 * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
 * console.log(await cluster.run('square', [7])); // 49
 * await cluster.close();
 * ```
 * @typeParam M - the module of the functions: `typeof import('./tasks.js')`
 */
export class ClusterCoordinator<M extends object = any>
  extends EventEmitter<ClusterEvents>
  implements AsyncDisposable
{
  /** The strategy that the cluster was made with. */
  readonly strategy: Strategy;
  /**
   * The stop flag of the whole cluster: `requestStop` in any worker stops everything. It cannot
   * be cleared.
   */
  readonly coordinator: Coordinator;
  readonly #queue: ClosureQueue<Closure>;
  readonly #rules: ClosureRules;
  readonly #group: CallGroup<Closure>;
  readonly #engine: Engine;
  readonly #resolver: NameResolver;
  readonly #functions: ModuleExports;
  readonly #datasets: Datasets;
  readonly #variables: VariableStore;
  readonly #calls: Calls;
  readonly #statistics = new FunctionStatistics();
  readonly #noWorker: NoWorkerWarning;
  /** Something was queued since the last event 'idle'. */
  #wasBusy = false;
  readonly #changes = new ChangeListeners();
  #closing: Promise<void> | undefined;
  /** Closes the cluster at a coordinator's stop. */
  #hook: Disposable | undefined;
  #drained: Promise<void> | undefined;
  /** The number of pending promises that users have. */
  #waiting = 0;
  /** The last argument of `Engine.setNeeded`. */
  #isNeeded = true;

  static {
    closeAtStop = (cluster, coordinator, drainMs) => {
      const close = async (): Promise<void> => {
        await within(drainMs, cluster.#untilEmpty(), () => {});
        await cluster.close();
      };
      cluster.#hook = coordinator.onStop(close, { name: 'pool' });
    };
    showAs(ClusterCoordinator.prototype, (cluster) => ({
      facts: [...cluster.#shown, counted(cluster.#engine.workers.length, 'worker')],
    }));
  }

  /**
   * @throws TypeError, RangeError; FailedPreconditionError: the strategy was used before, or its
   *   module makes this cluster in a worker that has imported it; the error of starting a worker
   */
  constructor(strategy: Strategy, options?: ClusterCoordinatorOptions) {
    if (typeof (strategy as Partial<Strategy> | null)?.connect !== 'function') {
      throw invalidType('strategy', 'a LocalStrategy or a NatsStrategy', strategy);
    }
    super();
    const { maxQueued, maxQueuedBytes, retries, cancelGraceMs, parent, results } =
      checkClusterOptions(options);
    if (used.has(strategy)) {
      throw new FailedPreconditionError(
        'This strategy already has a ClusterCoordinator: make a new strategy for each',
      );
    }
    refuseOwnModule(strategy.module);
    this.strategy = strategy;
    this.#functions = new ModuleExports(strategy.module);
    this.coordinator = clusterCoordinator(undefined, parent);
    this.#queue = new ClosureQueue<Closure>(maxQueued, maxQueuedBytes, {
      onWork: () => this.#engine.wake(),
      onOut: (closure) => {
        this.#group.left(closure);
        this.#updateNeeded();
        this.#checkIdle();
      },
    });
    this.#group = new CallGroup(this.#queue, (closure, reason) =>
      this.#engine.cancel(closure, { reason, replace: false }),
    );
    const { coordinator } = this;
    const variables = new ClusterVariables(this, () => this.#engine);
    this.#rules = new ClosureRules(
      { queue: this.#queue, coordinator, cancelGraceMs, retries, variables },
      {
        cancel: (closure, cancellation) => this.#engine.cancel(closure, cancellation),
        resources: () => this.#datasets.resources,
        onChange: () => {
          this.#changes.notify();
          queueMicrotask(() => {
            this.#updateNeeded();
            this.#updateCapacity();
          });
        },
        onRun: (closure, microseconds) => this.#statistics.onRun(closure, microseconds),
        onRetry: (closure, attempt, cause) => {
          this.#statistics.onRetry(closure);
          this.#tell('retry', { name: closure.work.name, attempt, cause });
        },
        whyNowhere: (placement) => this.#engine.whyNowhere(placement),
        onEvent: (...event) => {
          if (event[0] !== 'disconnected' && event[0] !== 'reconnected') {
            publishWorker(coordinator, ...event);
          }
          this.#tell(...event);
        },
      },
    );
    this.#resolver = new NameResolver(this.#functions, this.#changes, {
      functionNames: () => this.#engine.functions,
      isOver: () => this.#rules.isOver,
      keepAlive: (promise) => this.#wait(promise),
    });
    this.#datasets = new Datasets(this, {
      prepare: (resource) => this.#engine.prepare(resource),
      end: () => this.#queue.end,
      onDefined: () => this.#changes.notify(),
      forget: (id) => this.#engine.forget(id),
    });
    this.#noWorker = new NoWorkerWarning({
      report: () => this.#engine.report(),
      waiting: () => (this.#rules.isOver ? 0 : this.#queue.queued),
    });
    this.#calls = new Calls({
      cluster: this,
      group: this.#group,
      rules: this.#rules,
      resolver: this.#resolver,
      datasets: this.#datasets,
      owner: {
        coordinator,
        events: beginClosureEvents(attachmentOf(this.coordinator)),
        onSettled: (closure, outcome) => this.#statistics.onSettled(closure, outcome),
        onOver: ({ id }) => this.#variables.forget(id),
      },
      retries,
      results: results && {
        store: results.open(),
        definition: moduleFingerprint(strategy.module, strategy.definition),
      },
      sharesMemory: () => this.#sharesMemory,
      whyNowhere: (placement) => this.#engine.whyNowhere(placement),
      assertHeld: async () => await this.#engine.assertHeld?.(),
      onPut: () => {
        this.#wasBusy = true;
        this.#noWorker.onPut();
        this.#updateNeeded();
      },
      whyNoWorker: () => this.#noWorker.why(),
      keepAlive: (promise) => this.#wait(promise),
    });
    this.#engine = strategy.connect(this.#rules);
    this.#variables = this.#engine.variables?.(this) ?? variables;
    variablesOf.set(this, this.#variables);
    used.add(strategy);
    const stop = (): void => this.#stop(); // now, if the signal has aborted already
    if (coordinator.shouldStop()) stop();
    else coordinator.signal.addEventListener('abort', stop);
    this.#updateNeeded();
    this.#updateCapacity();
  }

  /** The workers, including stuck ones. */
  get workers(): WorkerInfo[] {
    return this.#engine.workers;
  }

  /** Counts of functions, and the strategy's counters, as plain data for dashboards and logs. */
  stats(): ClusterStats {
    const { ready: completed, failed, cancelled } = this.#statistics.counts;
    return {
      queued: this.#queue.queued + this.#queue.count('delayed'),
      held: this.#queue.count('held'),
      inFlight: this.#queue.count('in-flight'),
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
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const module = new URL('data:text/javascript,export const square = (x) => x * x');
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   *
   * const values = [];
   * for (const n of [1, 2, 3]) values.push(await cluster.schedule('square', [n]));
   * await cluster.join(); // throws the first error of a function
   * console.log(await cluster.fetch(values)); // [ 1, 4, 9 ]
   * await cluster.close();
   * ```
   * @param fn - an export of the strategy's module, or its name
   * @param args - its arguments; PerWorkerValues become those of the worker that runs it, and
   *   RemoteValues their values: until these are there the function waits outside the line, and if
   *   one fails it fails with that error
   * @throws (rejects) TypeError: not an export; DataCloneError: an argument that cannot be
   *   cloned; InvalidArgumentError: a RemoteValue inside an argument, or a SharedArrayBuffer where
   *   workers are no threads; the first error of a function, if no call has thrown it yet;
   *   CancelledError: the cluster was stopped; FailedPreconditionError: it is closed;
   *   UnavailableError: no worker will start any more; DeadlineExceededError, or the reason of
   *   `signal`: it was not queued in time, as its name had to be looked up, or there was no room
   */
  schedule<F extends AnyFunction>(
    fn: F,
    ...rest: ScheduleArgs<Parameters<F>>
  ): Promise<RemoteValue<Result<F>>>;
  /** As `schedule` with a function, by the name of the export. */
  schedule<K extends FunctionNames<M>>(
    name: K,
    ...rest: ScheduleArgs<Parameters<Named<M, K>>>
  ): Promise<RemoteValue<Result<Named<M, K>>>>;
  schedule(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: ScheduleOptions]
  ): Promise<RemoteValue<any>> {
    return this.#calls.call(fn, args, options, false);
  }

  /**
   * Runs a function and resolves with its result: one call, one promise. Its error, deadline or
   * cancellation is told to the caller and to nobody else: nothing else is cancelled, and no
   * `schedule`, `join` or `done` throws it; nor is it cancelled by the error of a scheduled
   * function. Takes the arguments and options of `schedule`. `join` waits for it.
   *
   * With a `key` the result is stored in the cluster's `results` before the promise resolves; a later
   * call of the function with that key and the same arguments, also in another run of the program,
   * resolves with it and runs nothing. Calls of one key at once share one run. A key that ended with
   * an error is run again.
   * @throws (rejects) what the function throws; the errors of the arguments and options that
   *   `schedule` throws; DeadlineExceededError, or the reason of `signal`, at any stage;
   *   CancelledError: the cluster was stopped or closed before the function has ended;
   *   FailedPreconditionError: it was closed before the call, or has no `results` for a key;
   *   UnavailableError: its workers have died too often, no worker will start any more, or the
   *   result cannot be stored; InvalidArgumentError: the key was used with other arguments, or they
   *   cannot be compared: a Variable, PerWorkerValues, shared memory
   */
  run<F extends AnyFunction>(
    fn: F,
    ...rest: ScheduleArgs<Parameters<F>, CallOptions>
  ): Promise<Result<F>>;
  /** As `run` with a function, by the name of the export. */
  run<K extends FunctionNames<M>>(
    name: K,
    ...rest: ScheduleArgs<Parameters<Named<M, K>>, CallOptions>
  ): Promise<Result<Named<M, K>>>;
  async run(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: CallOptions]
  ): Promise<any> {
    try {
      const remote = await this.#calls.call(fn, args, options, true);
      return await remote.fetch();
    } catch (error) {
      return await rejection(error);
    }
  }

  /**
   * Runs a function with each item and yields the results. Items are pulled from the first `next`
   * on, as there is room (`concurrency`): never more than that are pulled and not yielded. Each
   * call is one of `run`, with the options of a call; but `signal` ends the whole map.
   *
   * The first error (of a function in its turn, or of the source) is thrown. Then, when the loop
   * is left, and when the signal is aborted, what is in flight is cancelled and the source is
   * closed.
   *
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const module = new URL('data:text/javascript,export const square = (x) => x * x');
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   *
   * for await (const result of cluster.map('square', [1, 2, 3])) console.log(result); // 1, 4, 9
   * await cluster.close();
   * ```
   * @param fn - an export of the strategy's module that takes one argument, or its name
   * @param items - an iterable or an async iterable
   * @throws TypeError, RangeError: the arguments. Its `next` rejects with the errors of `run`
   */
  map<F extends AnyFunction, I extends ItemOf<F>, E extends OnError = 'throw'>(
    fn: F,
    items: Items<I>,
    options?: MapOptions<E, I>,
  ): MapResults<Mapped<Result<F>, I, E>>;
  /** As `map` with a function, by the name of the export. */
  map<K extends FunctionNames<M>, I extends ItemOf<Named<M, K>>, E extends OnError = 'throw'>(
    name: K,
    items: Items<I>,
    options?: MapOptions<E, I>,
  ): MapResults<Mapped<Result<Named<M, K>>, I, E>>;
  map(fn: AnyFunction | string, items: Items<any>, options?: MapOptions): MapResults<any> {
    const capacity = (): number => this.#engine.capacity;
    return map({ calls: this.#calls, changes: this.#changes, capacity }, fn, items, options);
  }

  /**
   * Resolves when everything that was scheduled or run before has ended.
   * @throws (rejects) the first error of a scheduled function, once; CancelledError,
   *   FailedPreconditionError, UnavailableError: as for `schedule`; DeadlineExceededError after
   *   `timeoutMs` (milliseconds, Infinity), or the reason of `signal`: then the functions go on
   */
  async join(options?: WaitOptions): Promise<void> {
    const limits = checkWaitOptions(options);
    const { signal, timeoutMs } = limits;
    throwIfAborted(signal);
    this.#hearStop();
    const call = { hasLeft: false, leave: (_error: unknown): void => {} };
    const joined = this.#resolver.after(async () => {
      if (call.hasLeft) return;
      const kept = this.#calls.keyed?.settled();
      await this.#group.join((leave) => {
        call.leave = leave;
      });
      await kept; // results may still have to be stored
    });
    const tooLate = (): Error =>
      new DeadlineExceededError(
        `join() timed out after ${timeoutMs} ms (options.timeoutMs): ${this.#queue.queued} functions are queued, ${this.#queue.count('in-flight')} have not ended`,
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
   * @throws (rejects) the first error of a function, once; CancelledError,
   *   FailedPreconditionError, UnavailableError: as for `schedule`
   */
  done(): Promise<boolean> {
    this.#hearStop();
    const done = async (): Promise<boolean> =>
      (await this.#group.done()) && this.#calls.keyed?.isBusy !== true;
    return this.#wait(this.#resolver.after(done));
  }

  /**
   * Resolves with a copy of the structure (arrays, plain objects, Maps, Sets), in which each
   * RemoteValue is replaced by its value.
   * @throws (rejects) the error of the first RemoteValue to fail
   */
  fetch<T>(structure: T): Promise<Fetched<T>> {
    return this.#wait(fetchAll(structure)) as Promise<Fetched<T>>;
  }

  /**
   * A data set that each worker makes for itself, by calling `datasetFn`, an export of the
   * module. A worker that replaces another makes its own before it takes functions. If `datasetFn`
   * throws, or ends its workers, the functions that use the data set fail with a ClosureInputError.
   * @throws TypeError; DataCloneError: an argument that cannot be cloned; InvalidArgumentError: an
   *   argument has a RemoteValue, PerWorkerValues, or shared memory though workers are processes;
   *   CancelledError, FailedPreconditionError, UnavailableError: as for `schedule`
   */
  createPerWorkerDataset<T>(
    datasetFn: ((...args: any[]) => DatasetOf<T>) | string,
    args?: readonly unknown[],
  ): PerWorkerDataset<T> {
    checkFunctionOrName(datasetFn);
    const call = makeCall(shownName(datasetFn), argumentsOf(args), this, this.#sharesMemory);
    if (call.perWorker !== undefined) {
      throw new InvalidArgumentError(
        'The arguments of a data set function cannot be PerWorkerValues',
      );
    }
    const name = async (): Promise<string> =>
      typeof datasetFn === 'string' ? datasetFn : await this.#functions.find(datasetFn);
    return this.#datasets.create<T>(name, call);
  }

  /**
   * Makes a variable, a number or an array of numbers that functions read and update, with a copy
   * of `initial`; or finds the one that was made with this name: that one keeps its value.
   *
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const code = 'export const count = (total) => total.assignAdd(1)';
   * const module = new URL(`data:text/javascript,${code}`);
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   * const total = await cluster.variable('total', 0);
   * for (let n = 0; n < 10; n++) await cluster.schedule('count', [total]);
   * await cluster.join();
   * console.log(await total.read()); // 10
   * await cluster.close();
   * ```
   * @param initial - a number, Float64Array, Float32Array or Int32Array
   * @throws (rejects) TypeError, RangeError: an argument; InvalidArgumentError: the name is that of
   *   a variable of another type or length; FailedPreconditionError: the cluster is closed;
   *   UnavailableError, with a NatsStrategy: no parameter server for it in time, or one is lost
   */
  async variable<T extends VariableValue>(
    name: string,
    initial: T,
    options?: VariableOptions,
  ): Promise<Variable<Widened<T>>> {
    checkVariableOptions(name, options);
    if (this.#closing) throw clusterClosed();
    const variable = await this.#wait(this.#variables.variable(name, initial, options));
    return variable as unknown as Variable<Widened<T>>;
  }

  /**
   * Resolves when every worker can take functions. Never hangs.
   *
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const module = new URL('data:text/javascript,export const square = (x) => x * x');
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   *
   * await cluster.ready({ timeoutMs: 10_000 });
   * console.log(cluster.workers.length); // 2
   * await cluster.close();
   * ```
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
    throwIfAborted(signal);
    await this.#wait(
      whenReady({
        report: () => {
          const report = this.#engine.report();
          // A worker that was not sent a data set yet reports that it is ready.
          return this.#datasets.isDefining ? { ...report, ready: false } : report;
        },
        whyNever: () => this.#whyNeverReady(),
        interrupted: (error) => attachmentOf(this.coordinator).interrupted(error),
        changes: this.#changes,
        timeoutMs,
        signal,
        onProgress,
      }),
    );
  }

  /**
   * Changes the number of workers of a LocalStrategy (1 to 1024). Resolves when that many
   * workers are ready. The workers with the highest indexes end first, after the functions that they
   * run. Of calls that overlap, the last one wins, and all settle with it.
   * @throws (rejects) TypeError, RangeError; FailedPreconditionError: another strategy, or the
   *   cluster is over; UnavailableError: a worker could not be started, and is tried again;
   *   CancelledError: the cluster was closed or stopped meanwhile
   */
  resize(workers: number): Promise<void> {
    return this.#wait(resize(this.#engine, this.#rules, this.#whyNeverReady(), workers));
  }

  /**
   * Ends the workers. For `drainMs` milliseconds (0) what was called before may still end, and later
   * calls are refused; then queued functions are cancelled, and running functions are asked to end
   * and have `cancelGraceMs` for that. Every RemoteValue is settled. A second call does not drain
   * any longer: it waits for the first, or ends what that still drains if its own `drainMs` is over
   * before.
   * @throws (rejects) TypeError, RangeError: the options
   */
  async close(options?: CloseOptions): Promise<void> {
    const { drainMs = 0 } = checkOptions('options', options, ['drainMs']);
    checkDuration('options.drainMs', drainMs);
    if (this.#closing === undefined) this.#engine.leave?.();
    if (drainMs > 0) await this.#wait(this.#drain(drainMs));
    this.#closing ??= this.#close();
    await this.#wait(this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A native thread may have stopped the cluster since the event loop has turned. */
  #hearStop(): void {
    if (this.coordinator.shouldStop()) void this.coordinator.signal; // reading it aborts it
  }

  get #sharesMemory(): boolean {
    return this.#engine.sharesMemory === true;
  }

  /** Workers keep the program alive while a promise is pending or a function has not ended. */
  #updateNeeded(): void {
    const needed =
      this.#waiting > 0 ||
      this.#queue.size > this.#queue.count('held') + this.#queue.count('waiting');
    if (needed === this.#isNeeded || this.#engine === undefined) return;
    this.#isNeeded = needed;
    this.#engine.setNeeded(needed);
  }

  /** Does nothing in `strategy.connect()`, in which zone.js runs microtasks that are due later. */
  #updateCapacity(): void {
    if (this.#engine === undefined) return;
    const { capacity } = this.#engine;
    this.#statistics.setCapacity(capacity);
    this.#noWorker.look(capacity > 0 || this.#rules.isOver);
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

  /** Whether nothing waits for room, is queued or in flight. */
  get #isEmpty(): boolean {
    return this.#queue.size === 0 && this.#group.waiting.length === 0;
  }

  /** The state of the cluster in a few words, for util.inspect. */
  get #shown(): string[] {
    const inFlight = `${this.#queue.count('in-flight')} in flight`;
    return [this.#rules.isOver ? 'ended' : 'running', `${this.#queue.queued} queued`, inFlight];
  }

  /** @returns undefined as long as workers can still become ready */
  #whyNeverReady(): NeverReady | undefined {
    const ended = this.#queue.end?.why;
    if (ended !== undefined || !this.coordinator.shouldStop()) return ended;
    const cause = this.coordinator.stopRecord?.error;
    return { why: 'the cluster was stopped', cause, isStop: true };
  }

  /** Called after a stop: drops the queued closures and cancels those in flight. */
  #stop(): void {
    const error = stopError(this.coordinator);
    const dropped = { state: 'cancelled', value: error } as const;
    this.#rules.end({ refusal: error, dropped }, this.coordinator.signal.reason);
  }

  /** Resolves when nothing is left to run, when the cluster is over, or after `drainMs`. */
  async #drain(drainMs: number): Promise<void> {
    this.#drained ??= this.#resolver.after(async () => {
      this.#queue.close({ refusal: new FailedPreconditionError('The cluster is closing') });
      this.#changes.notify();
      await this.#untilEmpty();
    });
    await within(drainMs, this.#drained, () => {});
  }

  /** Resolves when nothing is left to run, or when the cluster is over. */
  async #untilEmpty(): Promise<void> {
    await this.#changes.until(() => this.#isEmpty || this.#rules.isOver);
    await this.#calls.keyed?.settled();
  }

  /** Emits an event when the present call has ended: a listener that throws disturbs nothing. */
  #tell(...event: EngineEvent | ['retry', Retry] | ['idle']): void {
    if (this.listenerCount(event[0]) === 0) return;
    queueMicrotask(() => (this.emit as (...what: typeof event) => boolean).call(this, ...event));
  }

  #checkIdle(): void {
    if (!this.#isEmpty) return;
    this.#changes.notify();
    if (!this.#wasBusy) return;
    this.#wasBusy = false;
    this.#tell('idle');
  }

  async #close(): Promise<void> {
    this.#hook?.[Symbol.dispose]();
    const error = new CancelledError('The cluster was closed');
    const dropped = { state: 'cancelled', value: error } as const;
    const why = { why: 'the cluster is closed', cause: undefined };
    this.#rules.end({ refusal: clusterClosed(), dropped, why }, error);
    await this.#wait(this.#changes.until(() => this.#queue.size === 0));
    this.#variables.close();
    await this.#calls.keyed?.settled(); // what is being stored asks the engine
    await this.#engine.close();
    await this.#calls.keyed?.close();
    this.coordinator.requestStop();
  }
}
