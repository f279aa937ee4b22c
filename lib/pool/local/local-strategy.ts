/** LocalStrategy: the workers are threads or child processes of this program. */

import type { ResourceLimits, SHARE_ENV } from 'node:worker_threads';
import {
  type Checks,
  checkDuration,
  checkInteger,
  checkOptions,
  integerFrom,
  invalidType,
  isBag,
  oneOf,
  outOfRange,
  unchecked,
} from '../../base/arguments.ts';
import { builtin, workerThreads } from '../../base/builtins.ts';
import { showAs } from '../../base/inspect.ts';
import { messageOf } from '../../base/thrown-value.ts';
import { counted } from '../../coordinator/words.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { cloneChecked, refusedPart } from '../../values/lost-values.ts';
import { fileName } from '../queue/module-exports.ts';
import type { Engine, Strategy, StrategyHost } from '../queue/strategy.ts';
import { checkDefinition, checkExport, checkModule } from '../worker/module.ts';
import type { Isolation, Recycle, WorkerOptions } from '../workers/channel.ts';
import { WorkerPool } from '../workers/worker-pool.ts';

// The options of LocalStrategy that Node's Worker and `fork` take, checked.

/** Options of Node's Worker (threads) or `fork` (processes), for each worker. */
export type LocalWorkerOptions = {
  /** Threads only: limits of each worker's heap and stack, in MB. Default: those of Node. */
  resourceLimits?: ResourceLimits | undefined;
  /**
   * Threads only: the module finds a clone of it as `workerData` of `node:worker_threads`. Default:
   * undefined.
   */
  workerData?: unknown;
  /**
   * Options of Node. Threads take only options that are a thread's own. Default: those of this
   * process.
   */
  execArgv?: readonly string[] | undefined;
  /** `process.argv.slice(2)` of each worker. Default: empty. */
  argv?: readonly string[] | undefined;
  /**
   * `process.env` of each worker. SHARE_ENV, for threads only, lets them share this process's.
   * Default: a copy of this process's.
   */
  env?: NodeJS.ProcessEnv | typeof SHARE_ENV | undefined;
};

const aboveZero = (name: string, value: unknown): void => {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (!(value > 0)) throw outOfRange(name, 'a number > 0', value);
};

const aboveZeroFinite = (name: string, value: unknown): void => {
  aboveZero(name, value);
  if (value === Number.POSITIVE_INFINITY) throw outOfRange(name, 'a number > 0', value);
};

const LIMITS = {
  maxOldGenerationSizeMb: aboveZeroFinite,
  maxYoungGenerationSizeMb: aboveZeroFinite,
  codeRangeSizeMb: aboveZeroFinite,
  stackSizeMb: aboveZeroFinite,
};

/**
 * Checks the options, and copies them: later changes of the caller's objects have no effect.
 *
 * @throws TypeError, RangeError; InvalidArgumentError: workers of this isolation cannot have the
 *   option, or its value cannot be cloned
 */
function checkWorkerOptions(
  given: LocalWorkerOptions,
  isolation: Isolation,
): Pick<WorkerOptions, keyof LocalWorkerOptions> {
  const { resourceLimits, workerData, execArgv, argv, env } = given;
  if (isolation === 'process') {
    if (resourceLimits !== undefined) {
      throw threadsOnly('resourceLimits', "give V8's options in execArgv (--max-old-space-size)");
    }
    if (workerData !== undefined) throw threadsOnly('workerData', 'pass text in argv or env');
    if (env === workerThreads().SHARE_ENV)
      throw threadsOnly('env: SHARE_ENV', 'pass a copy of process.env');
  }
  return {
    resourceLimits: resourceLimits === undefined ? undefined : limitsOf(resourceLimits),
    workerData: cloneOf(workerData),
    execArgv: textsOf('options.execArgv', execArgv),
    argv: textsOf('options.argv', argv),
    env: env === undefined || env === workerThreads().SHARE_ENV ? env : environmentOf(env),
  };
}

function threadsOnly(option: string, instead: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `options.${option} is for worker threads: worker processes cannot have it. Use isolation: 'thread', or ${instead}`,
  );
}

function cloneOf(workerData: unknown): unknown {
  try {
    return cloneChecked(workerData);
  } catch (error) {
    const { path } = refusedPart({ path: 'options.workerData', value: workerData }, cloneChecked);
    throw new InvalidArgumentError(
      `options.workerData cannot be cloned for worker threads: ${path}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

const limitsOf = (given: ResourceLimits): ResourceLimits => ({
  ...checkOptions('options.resourceLimits', given, LIMITS),
});

function textsOf(name: string, given: unknown): string[] | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) throw invalidType(name, 'an array of strings', given);
  return given.map((text: unknown, at) => {
    if (typeof text !== 'string') throw invalidType(`${name}[${at}]`, 'of type string', text);
    return text;
  });
}

function environmentOf(given: unknown): NodeJS.ProcessEnv {
  if (!isBag(given)) throw invalidType('options.env', 'of type object, or SHARE_ENV', given);
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries<unknown>({ ...given })) {
    if (value === undefined) continue;
    if (typeof value !== 'string')
      throw invalidType(`options.env.${name}`, 'of type string', value);
    env[name] = value;
  }
  return env;
}

/** More workers while functions wait for one, fewer when workers have nothing to do. */
export type ElasticWorkers = {
  /** 0 to 1024. The cluster begins with this many workers, and with 1 at least. */
  min: number;
  /** 1 to 1024, and not less than `min`. */
  max: number;
  /**
   * Milliseconds without work after which a worker ends, if there are more than `min`. Default:
   * 10,000.
   */
  idleMs?: number | undefined;
};

type Limits = { readonly min: number; readonly max: number; readonly idleMs: number };

const IDLE_MS = 10_000;
const UNAVAILABLE_AFTER_MS = 60_000;
const MAX_WORKERS = 1_024;

/** The options of a LocalStrategy. */
export type LocalStrategyOptions = LocalWorkerOptions & {
  /** The module whose exports can be scheduled. Each worker imports it. */
  module: URL;
  /**
   * The number of workers, 1 to 1024 (default: the number of processors); or the limits between
   * which it follows the work.
   */
  workers?: number | ElasticWorkers | undefined;
  /**
   * 'thread' (the default): fast, and memory can be shared; a thread that is blocked in native
   * code cannot be ended. 'process': can always be ended, and a crash ends only that worker.
   */
  isolation?: Isolation | undefined;
  /**
   * How many asynchronous functions run at once on one worker, 1 to 1024 (default 1). A function
   * that blocks or computes holds up those that run beside it.
   */
  concurrency?: number | undefined;
  /**
   * When a worker is replaced by a new one, between functions: after `tasks` of them, or after one
   * that leaves the worker's V8 heap larger than `heapMb` (2 ** 20 bytes each; garbage that is not
   * collected counts, ArrayBuffers do not). By default no worker is replaced between functions.
   */
  recycle?: Recycle | undefined;
  /**
   * The name of an export that each worker calls with `{ workerIndex }`, and awaits, before it takes
   * functions. A worker whose `setup` throws cannot start. By default nothing is called.
   */
  setup?: string | undefined;
  /**
   * The name of an export that each worker calls with `{ workerIndex }` after its last function,
   * when the cluster lets it go (not when it dies or is ended by force), and that has
   * `cancelGraceMs` to end. What goes wrong there is a warning (`ALLSTOP_TEARDOWN`). By default
   * nothing is called.
   */
  teardown?: string | undefined;
  /**
   * The version of the program, such as a git hash: 1 to 128 printable ASCII characters without
   * spaces. What a store of results has of another definition is not used. Default: the SHA-256 of
   * the module's file.
   */
  definition?: string | undefined;
  /**
   * When no worker has been ready for so many milliseconds, because none can be started, calls are
   * rejected with `UnavailableError` until one is ready. Default: 60,000.
   */
  unavailableAfterMs?: number | undefined;
};

export const LOCAL_OPTIONS: Checks = {
  module: unchecked,
  workers: unchecked,
  isolation: oneOf('thread', 'process'),
  concurrency: integerFrom(1, 1_024),
  recycle: unchecked,
  setup: checkExport,
  teardown: checkExport,
  definition: checkDefinition,
  unavailableAfterMs: checkDuration,
  resourceLimits: unchecked,
  workerData: unchecked,
  execArgv: unchecked,
  argv: unchecked,
  env: unchecked,
};

/**
 * The workers of a cluster are threads or child processes of this program. Given to one
 * ClusterCoordinator, which starts the workers, replaces those that die, and ends all of them when
 * it is closed or stopped. Its properties are the options, with their defaults.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const where = () => process.pid');
 * const strategy = new LocalStrategy({ module, workers: 2, isolation: 'process' });
 * const cluster = new ClusterCoordinator(strategy);
 * console.log((await cluster.run('where')) !== process.pid); // true
 * await cluster.close();
 * ```
 */
export class LocalStrategy implements Strategy {
  /** The option `module`. */
  readonly module: URL;
  /** The option `workers`. */
  readonly workers: number | Limits;
  /** The option `isolation`. */
  readonly isolation: Isolation;
  /** The option `concurrency`. */
  readonly concurrency: number;
  /** The option `recycle`. */
  readonly recycle: Recycle | undefined;
  /** The option `setup`. */
  readonly setup: string | undefined;
  /** The option `teardown`. */
  readonly teardown: string | undefined;
  /** The option `definition`. */
  readonly definition: string | undefined;
  /** The option `unavailableAfterMs`. */
  readonly unavailableAfterMs: number;
  /** Private, so that an environment with secrets does not show when the strategy is printed. */
  readonly #worker: ReturnType<typeof checkWorkerOptions>;

  static {
    showAs(LocalStrategy.prototype, ({ module, workers, isolation }) => ({
      facts: [fileName(module), shown(workers), `isolation '${isolation}'`],
    }));
  }

  /**
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`), RangeError;
   *   InvalidArgumentError: workers of this isolation cannot have an option
   */
  constructor(options: LocalStrategyOptions) {
    const given = checkOptions('options', options, LOCAL_OPTIONS) as LocalStrategyOptions;
    const { workers = builtin('node:os').availableParallelism(), isolation = 'thread' } = given;
    const { concurrency = 1, unavailableAfterMs = UNAVAILABLE_AFTER_MS } = given;
    const module = checkModule(given.module);
    const recycle = given.recycle === undefined ? undefined : checkRecycle(given.recycle);
    this.#worker = checkWorkerOptions(given, isolation);
    this.module = module;
    this.workers = checkWorkers(workers);
    this.isolation = isolation;
    this.concurrency = concurrency;
    this.recycle = recycle;
    this.setup = given.setup;
    this.teardown = given.teardown;
    this.definition = given.definition;
    this.unavailableAfterMs = unavailableAfterMs;
  }

  /** @internal */
  connect(host: StrategyHost): Engine {
    const { module, workers, isolation, concurrency, recycle, setup, teardown } = this;
    const { unavailableAfterMs } = this;
    const own = { module, isolation, concurrency, recycle, setup, teardown, unavailableAfterMs };
    const number =
      typeof workers === 'number'
        ? { workers }
        : { workers: Math.max(1, workers.min), elastic: workers };
    return new WorkerPool(host, { ...own, ...number, ...this.#worker });
  }
}

/** The number of workers in words, for util.inspect. */
const shown = (workers: number | Limits): string =>
  typeof workers === 'number'
    ? counted(workers, 'worker')
    : `${workers.min} to ${counted(workers.max, 'worker')}`;

/** @throws TypeError, RangeError */
function checkWorkers(given: number | ElasticWorkers): number | Limits {
  if (!isBag(given)) {
    if (typeof given !== 'number') {
      throw invalidType('options.workers', 'of type number, or { min, max, idleMs }', given);
    }
    checkInteger('options.workers', given, 1, MAX_WORKERS);
    return given;
  }
  const known = { min: unchecked, max: unchecked, idleMs: checkDuration };
  const {
    min,
    max,
    idleMs = IDLE_MS,
  } = checkOptions('options.workers', given, known) as ElasticWorkers;
  checkInteger('options.workers.min', min, 0, MAX_WORKERS);
  checkInteger('options.workers.max', max, Math.max(1, min), MAX_WORKERS);
  return Object.freeze({ min, max, idleMs });
}

/** @throws TypeError, RangeError */
function checkRecycle(given: Recycle): Recycle {
  const known = { tasks: integerFrom(1), heapMb: aboveZero };
  const { tasks, heapMb } = checkOptions('options.recycle', given, known);
  return Object.freeze({ tasks, heapMb });
}
