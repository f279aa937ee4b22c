/** `createPool`: a pool of workers of this machine, in one call. */

import { type Checks, checkDuration, checkOptions } from '../base/arguments.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import { InvalidArgumentError } from '../errors/errors.ts';
import { CallPool, closeAtStop } from './call-pool.ts';
import { LOCAL_OPTIONS, LocalStrategy, type LocalStrategyOptions } from './local/local-strategy.ts';
import { CLUSTER_OPTIONS, type ClusterOptions, isCoordinator } from './pool-options.ts';
import { checkModule } from './worker/module.ts';

/** The options of `createPool`: those of a LocalStrategy and of a ClusterCoordinator, and these. */
export type PoolOptions = Omit<LocalStrategyOptions, 'module'> &
  ClusterOptions & {
    /**
     * At the stop of this coordinator the pool takes calls until nothing is in line and in flight, or
     * `drainMs` is over; then it is closed. It is a hook: those registered later run before. (The
     * option `coordinator` cancels the calls at the stop.) By default no stop closes the pool.
     */
    closeOnStop?: Coordinator | undefined;
    /** Milliseconds that calls have to end when `closeOnStop` stops. Default: 10,000. */
    drainMs?: number | undefined;
  };

/**
 * Workers, and what calls the functions of their module.
 *
 * @typeParam M - the module of the functions: `typeof import('./tasks.js')`
 */
export type Pool<M extends object = any> = Pick<
  CallPool<M>,
  | 'run'
  | 'map'
  | 'ready'
  | 'resize'
  | 'close'
  | 'workers'
  | 'stats'
  | 'coordinator'
  | 'on'
  | 'off'
  | 'once'
  | typeof Symbol.asyncDispose
>;

const DRAIN_MS = 10_000;

const { module: _, ...OF_STRATEGY } = LOCAL_OPTIONS;
const OPTIONS: Checks = {
  ...OF_STRATEGY,
  ...CLUSTER_OPTIONS,
  closeOnStop: isCoordinator,
  drainMs: checkDuration,
};

const pick = (given: Record<string, unknown>, checks: Checks): object =>
  Object.fromEntries(Object.entries(given).filter(([name]) => name in checks));

/**
 * Starts workers that import a module, whose functions they run.
 *
 * @example
 * ```js
 * import { createPool } from 'allstop/pool';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const pool = createPool(module, { workers: 2 });
 * console.log(await pool.run('square', [7])); // 49
 * await pool.close();
 * ```
 * @param module - its exports can be called. Of `tasks.js`, which is not there, the `tasks.ts` beside
 *   it is meant
 * @typeParam M - the module of the functions: `typeof import('./tasks.js')`
 * @throws TypeError, RangeError, InvalidArgumentError: an argument; the error of starting a worker
 */
export function createPool<M extends object = any>(module: URL, options?: PoolOptions): Pool<M> {
  const file = checkModule(module, 'module');
  const given = checkOptions('options', options, OPTIONS);
  const { closeOnStop, drainMs = DRAIN_MS } = given;
  if (closeOnStop === undefined && given.drainMs !== undefined) {
    throw new InvalidArgumentError(
      'options.drainMs is for options.closeOnStop, which is not given: pool.close({ drainMs }) takes its own',
    );
  }
  if (closeOnStop !== undefined && given.coordinator === closeOnStop) {
    throw new InvalidArgumentError(
      'options.coordinator and options.closeOnStop are the same coordinator: the first has its stop cancel the calls, the second lets them end. Give one of them',
    );
  }
  const strategy = new LocalStrategy({ ...pick(given, OF_STRATEGY), module: file });
  const pool = new CallPool<M>(strategy, pick(given, CLUSTER_OPTIONS));
  if (closeOnStop !== undefined) closeAtStop(pool, closeOnStop, drainMs);
  return pool;
}
