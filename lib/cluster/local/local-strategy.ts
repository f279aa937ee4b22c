/** LocalStrategy: the workers are threads or child processes of this program. */

import { availableParallelism } from 'node:os';
import { checkOneOf, checkOptions, invalidType, outOfRange } from '../../base/arguments.ts';
import type { Engine, Strategy, StrategyHost } from '../closures/strategy.ts';
import type { Isolation } from '../pool/channel.ts';
import { WorkerPool } from '../pool/worker-pool.ts';

export type LocalStrategyOptions = {
  /** The module whose exports can be scheduled. Each worker imports it. */
  module: URL;
  /** The number of workers, 1 to 1024 (default: the number of processors). */
  workers?: number | undefined;
  /**
   * 'thread' (the default): fast, and memory can be shared; a thread that is blocked in native
   * code cannot be ended. 'process': can always be ended, and a crash ends only that worker.
   */
  isolation?: Isolation | undefined;
};

const OPTIONS = ['module', 'workers', 'isolation'] satisfies (keyof LocalStrategyOptions)[];

const pools = new WeakMap<Strategy, WorkerPool>();

/** The workers of a strategy that has a ClusterCoordinator, for `allstop/testing`. */
export function poolOf(strategy: Strategy): WorkerPool | undefined {
  return pools.get(strategy);
}

export class LocalStrategy implements Strategy {
  readonly module: URL;
  readonly workers: number;
  readonly isolation: Isolation;

  /** @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError */
  constructor(options: LocalStrategyOptions) {
    const given = checkOptions('options', options, OPTIONS) as LocalStrategyOptions;
    const { module, workers = availableParallelism(), isolation = 'thread' } = given;
    if (!(module instanceof URL)) throw invalidType('options.module', 'an instance of URL', module);
    if (typeof workers !== 'number')
      throw invalidType('options.workers', 'of type number', workers);
    if (!Number.isInteger(workers) || workers < 1 || workers > 1_024) {
      throw outOfRange('options.workers', 'an integer >= 1 and <= 1024', workers);
    }
    checkOneOf('options.isolation', ['thread', 'process'], isolation);
    this.module = module;
    this.workers = workers;
    this.isolation = isolation;
  }

  /** @internal */
  connect(host: StrategyHost): Engine {
    const pool = new WorkerPool(host, this);
    pools.set(this, pool);
    return pool;
  }
}
