/** The options of LocalStrategy that Node's Worker and `fork` take, checked. */

import { type ResourceLimits, SHARE_ENV } from 'node:worker_threads';
import { checkOptions, invalidType, isBag, outOfRange } from '../../base/arguments.ts';
import { messageOf } from '../../base/thrown-value.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { refusedPart } from '../../values/refused-values.ts';
import type { Isolation, WorkerOptions } from '../workers/channel.ts';

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

export const WORKER_OPTIONS: readonly (keyof LocalWorkerOptions)[] = [
  'resourceLimits',
  'workerData',
  'execArgv',
  'argv',
  'env',
];

const LIMITS = [
  'maxOldGenerationSizeMb',
  'maxYoungGenerationSizeMb',
  'codeRangeSizeMb',
  'stackSizeMb',
] satisfies (keyof ResourceLimits)[];

/**
 * Checks the options, and copies them: later changes of the caller's objects have no effect.
 *
 * @throws TypeError, RangeError; InvalidArgumentError: workers of this isolation cannot have the
 *   option, or its value cannot be cloned
 */
export function checkWorkerOptions(
  given: LocalWorkerOptions,
  isolation: Isolation,
): Pick<WorkerOptions, keyof LocalWorkerOptions> {
  const { resourceLimits, workerData, execArgv, argv, env } = given;
  if (isolation === 'process') {
    if (resourceLimits !== undefined) {
      throw threadsOnly('resourceLimits', "give V8's options in execArgv (--max-old-space-size)");
    }
    if (workerData !== undefined) throw threadsOnly('workerData', 'pass text in argv or env');
    if (env === SHARE_ENV) throw threadsOnly('env: SHARE_ENV', 'pass a copy of process.env');
  }
  return {
    resourceLimits: resourceLimits === undefined ? undefined : limitsOf(resourceLimits),
    workerData: cloneOf(workerData),
    execArgv: execArgv === undefined ? undefined : textsOf('options.execArgv', execArgv),
    argv: argv === undefined ? undefined : textsOf('options.argv', argv),
    env: env === undefined || env === SHARE_ENV ? env : environmentOf(env),
  };
}

function threadsOnly(option: string, instead: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `options.${option} is for worker threads: worker processes cannot have it. Use isolation: 'thread', or ${instead}`,
  );
}

function limitsOf(given: ResourceLimits): ResourceLimits {
  const limits = { ...checkOptions('options.resourceLimits', given, LIMITS) };
  for (const [name, value] of Object.entries<unknown>({ ...limits })) {
    const option = `options.resourceLimits.${name}`;
    if (typeof value !== 'number') throw invalidType(option, 'of type number', value);
    if (!(value > 0 && value < Number.POSITIVE_INFINITY)) {
      throw outOfRange(option, 'a number > 0', value);
    }
  }
  return limits;
}

function cloneOf(workerData: unknown): unknown {
  try {
    return structuredClone(workerData);
  } catch (error) {
    const { path } = refusedPart(
      { path: 'options.workerData', value: workerData },
      structuredClone,
    );
    throw new InvalidArgumentError(
      `options.workerData cannot be cloned for worker threads: ${path}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

function textsOf(name: string, given: unknown): string[] {
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
