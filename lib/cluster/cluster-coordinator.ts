/** The public class ClusterCoordinator: a pool, and what TensorFlow has beside it. */

import { throwIfAborted } from '../base/abort.ts';
import { DeadlineExceededError, InvalidArgumentError, poolClosed } from '../errors/errors.ts';
import { CallPool, type PoolCore, type PoolExtension } from '../pool/call-pool.ts';
import {
  type CallsHost,
  checkWaitOptions,
  shownName,
  type WaitOptions,
} from '../pool/calls/calls.ts';
import type {
  FunctionNames,
  Named,
  Result,
  ScheduleArgs,
  ScheduleOptions,
} from '../pool/calls/signatures.ts';
import type { ClusterOptions } from '../pool/pool-options.ts';
import type { Call } from '../pool/queue/call.ts';
import { type AnyFunction, checkFunctionOrName } from '../pool/queue/module-exports.ts';
import { inTime } from '../pool/queue/time-limits.ts';
import { argumentsOf } from '../pool/queue/work.ts';
import type { Resource } from '../pool/worker/messages.ts';
import { CallGroup } from './calls/call-group.ts';
import { ClusterCalls } from './calls/cluster-calls.ts';
import { type Fetched, fetchAll, type RemoteValue } from './calls/remote-value.ts';
import type { ClusterEngine, Strategy } from './cluster-strategy.ts';
import { type DatasetOf, Datasets, type PerWorkerDataset } from './datasets/datasets.ts';
import { ClusterVariables } from './variables/cluster-variables.ts';
import {
  checkVariableOptions,
  type Variable,
  type VariableOptions,
  type VariableStore,
  type VariableValue,
  variablesOf,
  type Widened,
} from './variables/variable.ts';

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
export class ClusterCoordinator<M extends object = any> extends CallPool<M> {
  /** The strategy that the cluster was made with. */
  readonly strategy: Strategy;
  readonly #parts: ClusterParts;

  /**
   * @throws TypeError, RangeError; FailedPreconditionError: the strategy was used before, or its
   *   module makes this cluster in a worker that has imported it; the error of starting a worker
   */
  constructor(strategy: Strategy, options?: ClusterOptions) {
    let parts: ClusterParts | undefined;
    super(strategy, options, (core, cluster) => (parts = new ClusterParts(core, cluster)));
    this.strategy = strategy;
    this.#parts = parts as unknown as ClusterParts;
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
    return this.#parts.calls.schedule(fn, args, options);
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
    const { core, group, calls } = this.#parts;
    throwIfAborted(signal);
    core.hearStop();
    const call = { hasLeft: false, leave: (_error: unknown): void => {} };
    const joined = core.resolver.after(async () => {
      if (call.hasLeft) return;
      const kept = calls.kept?.settled();
      await group.join((leave) => {
        call.leave = leave;
      });
      await kept; // results may still have to be stored
    });
    const tooLate = (): Error =>
      new DeadlineExceededError(
        `join() timed out after ${timeoutMs} ms (options.timeoutMs): ${core.queue.queued} functions are queued, ${core.queue.count('in-flight')} have not ended`,
      );
    try {
      await core.wait(inTime(joined, limits, tooLate));
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
    const { core, group, calls } = this.#parts;
    core.hearStop();
    const done = async (): Promise<boolean> =>
      calls.give((await group.done()) && calls.kept?.isBusy !== true);
    return core.wait(core.resolver.after(done));
  }

  /**
   * Resolves with a copy of the structure (arrays, plain objects, Maps, Sets), in which each
   * RemoteValue is replaced by its value.
   * @throws (rejects) the error of the first RemoteValue to fail
   */
  fetch<T>(structure: T): Promise<Fetched<T>> {
    return this.#parts.core.wait(fetchAll(structure)) as Promise<Fetched<T>>;
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
    const { core, calls, datasets } = this.#parts;
    const work = calls.make(shownName(datasetFn), argumentsOf(args));
    if (work.perWorker !== undefined) {
      throw new InvalidArgumentError(
        'The arguments of a data set function cannot be PerWorkerValues',
      );
    }
    const name = async (): Promise<string> =>
      typeof datasetFn === 'string' ? datasetFn : await core.resolver.find(datasetFn);
    return datasets.create<T>(name, work);
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
    const { core, store } = this.#parts;
    if (core.isClosing) throw poolClosed('cluster');
    const variable = await core.wait(store.variable(name, initial, options));
    return variable as unknown as Variable<Widened<T>>;
  }
}

// What a cluster has beside its pool: scheduled calls, variables, data sets.

class ClusterParts implements PoolExtension<ClusterEngine> {
  readonly core: PoolCore;
  readonly group: CallGroup<Call>;
  readonly datasets: Datasets;
  /** Those whose values are in this process. */
  readonly variables: ClusterVariables;
  /** Where the values are. */
  store: VariableStore;
  readonly #cluster: object;

  /** @param cluster - the ClusterCoordinator */
  constructor(core: PoolCore, cluster: object) {
    this.core = core;
    this.#cluster = cluster;
    this.group = new CallGroup(core.queue, (call, reason) =>
      core.engine.cancel(call, { reason, replace: false }),
    );
    this.datasets = new Datasets(cluster, core);
    this.variables = new ClusterVariables(cluster, () => core.engine);
    this.store = this.variables;
  }

  /** Those of `makeCalls`. */
  get calls(): ClusterCalls {
    return this.core.calls as ClusterCalls;
  }

  get resources(): Iterable<Resource> {
    return this.datasets.resources;
  }

  get isDefining(): boolean {
    return this.datasets.isDefining;
  }

  get waiting(): Call[] {
    return this.group.waiting;
  }

  makeCalls(host: CallsHost): ClusterCalls {
    return new ClusterCalls(host, this.#cluster, this.group, this.datasets);
  }

  connected(engine: ClusterEngine): void {
    this.store = engine.variables?.(this.#cluster) ?? this.variables;
    variablesOf.set(this.#cluster, this.store);
  }

  left(call: Call): void {
    this.store.forget(call.id);
    this.group.left(call);
  }

  close(): void {
    this.store.close();
  }
}
