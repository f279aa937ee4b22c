/** The public class behind `createPool`, which is the base of ClusterCoordinator. */

import { EventEmitter } from 'node:events';
import { showAs } from '../base/inspect.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { map } from './calls/mapped.ts';
import type {
  CallOptions,
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
} from './calls/signatures.ts';
import { PoolCore, type PoolExtension } from './pool-core.ts';
import type {
  CloseOptions,
  ClusterCoordinatorOptions,
  ClusterEvents,
  ClusterStats,
  ReadyOptions,
} from './pool-options.ts';
import type { AnyFunction } from './queue/module-exports.ts';
import type { Engine, Strategy, WorkerInfo } from './queue/strategy.ts';

/** Closes the pool at the coordinator's stop (`PoolCore.closeAtStop`). */
export let closeAtStop: (pool: CallPool, coordinator: Coordinator, drainMs: number) => void;

/** What runs the calls of the pool: of a LocalStrategy a WorkerPool. */
export let engineOf: (pool: CallPool) => Engine;

/** Workers, and the calls of the functions of their module. */
export class CallPool<M extends object = any>
  extends EventEmitter<ClusterEvents>
  implements AsyncDisposable
{
  /**
   * The stop flag of the whole cluster: `requestStop` in any worker stops everything. It cannot
   * be cleared.
   */
  readonly coordinator: Coordinator;
  readonly #core: PoolCore;

  static {
    engineOf = (pool) => pool.#core.engine;
    closeAtStop = (pool, coordinator, drainMs) => pool.#core.closeAtStop(coordinator, drainMs);
    showAs(CallPool.prototype, (pool) => ({ facts: pool.#core.facts }));
  }

  /** @internal */
  constructor(
    strategy: Strategy,
    options?: ClusterCoordinatorOptions,
    extend?: (core: PoolCore, pool: CallPool) => PoolExtension<Engine>,
  ) {
    super();
    this.#core = new PoolCore(this, strategy, options, extend && ((core) => extend(core, this)));
    this.coordinator = this.#core.coordinator;
  }

  /** The workers, including stuck ones. */
  get workers(): WorkerInfo[] {
    return this.#core.engine.workers;
  }

  /** Counts of functions, and the strategy's counters, as plain data for dashboards and logs. */
  stats(): ClusterStats {
    return this.#core.stats();
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
  run(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: CallOptions]
  ): Promise<any> {
    return this.#core.calls.run(fn, args, options);
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
    const { calls, changes, engine } = this.#core;
    return map({ calls, changes, capacity: () => engine.capacity }, fn, items, options);
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
  ready(options?: ReadyOptions): Promise<void> {
    return this.#core.ready(options);
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
    return this.#core.resize(workers);
  }

  /**
   * Ends the workers. For `drainMs` milliseconds (0) what was called before may still end, and later
   * calls are refused; then queued functions are cancelled, and running functions are asked to end
   * and have `cancelGraceMs` for that. Every RemoteValue is settled. A second call does not drain
   * any longer: it waits for the first, or ends what that still drains if its own `drainMs` is over
   * before.
   * @throws (rejects) TypeError, RangeError: the options
   */
  close(options?: CloseOptions): Promise<void> {
    return this.#core.close(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
