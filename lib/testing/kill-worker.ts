/** `killWorker`: a worker of a pool or a cluster is killed from outside. */

import { checkOptions, checkString, integerFrom, invalidType } from '../base/arguments.ts';
import { FailedPreconditionError, InvalidArgumentError } from '../errors/errors.ts';
import { hold, release } from '../native/native.ts';
import { CallPool, engineOf } from '../pool/call-pool.ts';
import type { Pool } from '../pool/create-pool.ts';
import type { WorkerInfo } from '../pool/queue/strategy.ts';
import { WorkerPool } from '../pool/workers/worker-pool.ts';

/** Which worker is killed: by its index, or by the function that it runs. */
export type KillWorkerOptions =
  | {
      /** The index of the worker, from 0: `currentCall().workerIndex`, `workers[].index`. */
      worker: number;
      /** Left out: the index has chosen the worker. */
      function?: undefined;
    }
  | {
      /** The name of a function. Of several workers that run it the one with the lowest index. */
      function: string;
      /** Left out: the function has chosen the worker. */
      worker?: undefined;
    };

/** What `killWorker` resolves with. */
export type KilledWorker = {
  /** The index of the worker. */
  worker: number;
  /**
   * How the pool saw the worker end, as in its event `workerLost`: an UnavailableError with
   * the `exitCode` of a thread or the `exitSignal` of a process.
   */
  error: Error;
};

/** Of a LocalStrategy. */
const MOST_WORKERS = 1_024;

/** The worker that runs the function. A stuck thread, which cannot be killed, runs nothing. */
function runnerOf(name: string, workers: readonly WorkerInfo[]): number {
  const busy = workers.filter(({ state }) => state === 'busy');
  const runner = busy.find(({ calls }) => calls.some((call) => call.name === name));
  if (runner !== undefined) return runner.index;
  const running = new Set(busy.flatMap(({ calls }) => calls.map((call) => `'${call.name}'`)));
  const what = running.size === 0 ? 'No function runs' : `These run: ${[...running].join(', ')}`;
  throw new FailedPreconditionError(
    `No worker runs '${name}' now. ${what}. Wait until the function runs before you call killWorker(): have it pass a Gate, and await gate.arrived()`,
  );
}

/** The index of the worker that the options choose. */
function chosen(options: KillWorkerOptions, pool: WorkerPool): number {
  const known = { worker: integerFrom(0, MOST_WORKERS - 1), function: checkString };
  const { worker, function: name } = checkOptions('options', options, known);
  if ((worker === undefined) === (name === undefined)) {
    throw new InvalidArgumentError(
      'The options of killWorker() must have either the index of a worker ({ worker: 0 }) or the name of a function that it runs',
    );
  }
  if (name === undefined) return worker as number;
  if (pool.functions?.includes(name) === false) {
    throw new InvalidArgumentError(`The module of the workers has no function '${name}'`);
  }
  return runnerOf(name, pool.workers);
}

/**
 * Kills one worker now, as somebody outside would: a thread is terminated, also while it computes
 * without end, and a process gets SIGKILL. The pool then does what it does after any death: it
 * starts another worker, and what the worker was running is run again until its `retries` are used
 * up. Works for pools of `createPool` and clusters with a LocalStrategy, in the thread that has made them.
 *
 * To kill a worker in the middle of a function, have the function pass a `Gate` and await
 * `gate.arrived()` before. (What was sent to a process counts as running, even if the function has
 * not begun.) A thread that is blocked in native code ends when that code returns.
 *
 * @example
 * ```js
 * import { createPool } from 'allstop/pool';
 * import { killWorker } from 'allstop/testing';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const pool = createPool(module, { workers: 1 });
 * await pool.ready();
 * const { error } = await killWorker(pool, { worker: 0 });
 * console.log(error.name, await pool.run('square', [7])); // UnavailableError 49
 * await pool.close();
 * ```
 * @returns a promise that resolves when the worker is gone and its functions are in line again. It
 *   keeps the program alive
 * @throws (rejects) FailedPreconditionError: no worker runs the function, there is no such
 *   worker now, or the cluster has no LocalStrategy; InvalidArgumentError: the module has no such
 *   function, or the options have not exactly one of `worker` and `function`; TypeError, RangeError
 */
export async function killWorker(cluster: Pool, options: KillWorkerOptions): Promise<KilledWorker> {
  if (!(cluster instanceof CallPool)) {
    throw invalidType(
      'cluster',
      'a pool of createPool or an instance of ClusterCoordinator',
      cluster,
    );
  }
  if (options === undefined) throw invalidType('options', 'of type object', options);
  const pool = engineOf(cluster);
  if (!(pool instanceof WorkerPool)) {
    throw new FailedPreconditionError(
      'killWorker() kills the workers of a LocalStrategy. On NATS, end the process of `allstop worker` yourself',
    );
  }
  const worker = chosen(options, pool);
  const death = pool.crash(worker);
  if (death === undefined) {
    throw new FailedPreconditionError(
      `There is no worker ${worker} now. It may have ended, and no other has taken its place yet: await cluster.ready() before you call killWorker(). A cluster that is closed has no workers`,
    );
  }
  hold();
  try {
    return { worker, error: await death };
  } finally {
    release();
  }
}
