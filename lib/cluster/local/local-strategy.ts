/** LocalStrategy: the workers are threads or child processes of this program. */

import { availableParallelism } from 'node:os';
import { checkInteger, checkOneOf, checkOptions, invalidType } from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import { counted } from '../../coordinator/words.ts';
import { fileName } from '../closures/module-exports.ts';
import type { Engine, Strategy, StrategyHost } from '../closures/strategy.ts';
import type { Isolation } from '../pool/channel.ts';
import { WorkerPool } from '../pool/worker-pool.ts';
import { checkDefinition, checkHooks } from '../worker/module-options.ts';
import { checkWorkerOptions, type LocalWorkerOptions, WORKER_OPTIONS } from './worker-options.ts';

export type LocalStrategyOptions = LocalWorkerOptions & {
  /** The module whose exports can be scheduled. Each worker imports it. */
  module: URL;
  /** The number of workers, 1 to 1024 (default: the number of processors). */
  workers?: number | undefined;
  /**
   * 'thread' (the default): fast, and memory can be shared; a thread that is blocked in native
   * code cannot be ended. 'process': can always be ended, and a crash ends only that worker.
   */
  isolation?: Isolation | undefined;
  /**
   * How many asynchronous functions run at once on one worker, 1 to 1024 (1). A function that
   * blocks or computes holds up those that run beside it.
   */
  concurrency?: number | undefined;
  /**
   * The name of an export that each worker calls with `{ workerIndex }`, and awaits, before it takes
   * functions. One that throws is a worker that cannot start.
   */
  setup?: string | undefined;
  /**
   * The name of an export that each worker calls with `{ workerIndex }` after its last function,
   * when the cluster lets it go (not when it dies or is ended by force), and that has
   * `cancelGraceMs` to end. What goes wrong there is a warning (`ALLSTOP_TEARDOWN`).
   */
  teardown?: string | undefined;
  /**
   * The version of the program, such as a git hash: 1 to 128 printable ASCII characters without
   * spaces. What a store of results has of another definition is not used.
   */
  definition?: string | undefined;
};

const OPTIONS = [
  'module',
  'workers',
  'isolation',
  'concurrency',
  'setup',
  'teardown',
  'definition',
  ...WORKER_OPTIONS,
] satisfies (keyof LocalStrategyOptions)[];

const pools = new WeakMap<Strategy, WorkerPool>();

/** The workers of a strategy that has a ClusterCoordinator, for `allstop/testing`. */
export function poolOf(strategy: Strategy): WorkerPool | undefined {
  return pools.get(strategy);
}

export class LocalStrategy implements Strategy {
  readonly module: URL;
  readonly workers: number;
  readonly isolation: Isolation;
  readonly concurrency: number;
  readonly setup: string | undefined;
  readonly teardown: string | undefined;
  readonly definition: string | undefined;
  /** Private, so that an environment with secrets does not show when the strategy is printed. */
  readonly #worker: ReturnType<typeof checkWorkerOptions>;

  static {
    showAs(LocalStrategy.prototype, ({ module, workers, isolation }) => ({
      facts: [fileName(module), counted(workers, 'worker'), `isolation '${isolation}'`],
    }));
  }

  /**
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`), RangeError;
   *   InvalidArgumentError: workers of this isolation cannot have an option
   */
  constructor(options: LocalStrategyOptions) {
    const given = checkOptions('options', options, OPTIONS) as LocalStrategyOptions;
    const { module, workers = availableParallelism(), isolation = 'thread' } = given;
    const { concurrency = 1 } = given;
    if (!(module instanceof URL)) throw invalidType('options.module', 'an instance of URL', module);
    checkInteger('options.workers', workers, 1, 1_024);
    checkOneOf('options.isolation', ['thread', 'process'], isolation);
    checkInteger('options.concurrency', concurrency, 1, 1_024);
    checkHooks(given);
    checkDefinition(given.definition);
    this.#worker = checkWorkerOptions(given, isolation);
    this.module = module;
    this.workers = workers;
    this.isolation = isolation;
    this.concurrency = concurrency;
    this.setup = given.setup;
    this.teardown = given.teardown;
    this.definition = given.definition;
  }

  /** @internal */
  connect(host: StrategyHost): Engine {
    const { module, workers, isolation, concurrency, setup, teardown } = this;
    const own = { module, workers, isolation, concurrency, setup, teardown };
    const pool = new WorkerPool(host, { ...own, ...this.#worker });
    pools.set(this, pool);
    return pool;
  }
}
