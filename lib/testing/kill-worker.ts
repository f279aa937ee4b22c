/** `killWorker`: a worker of a cluster dies in the middle of a function. */

import {
  checkDuration,
  checkOptions,
  checkSignal,
  checkString,
  invalidType,
} from '../base/arguments.ts';
import { ClusterCoordinator } from '../cluster/cluster-coordinator.ts';
import { poolOf } from '../cluster/local/local-strategy.ts';
import type { KillOrder } from '../cluster/pool/kill-orders.ts';
import { HOW_TO_DIE } from '../cluster/worker/death.ts';
import {
  CancelledError,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
} from '../errors/errors.ts';

export type KillWorkerOptions = {
  /** The name of the function (default: any function). */
  function?: string | undefined;
  /**
   * How the worker dies. 'terminate' (the default): by force, `worker.terminate()` of a thread,
   * SIGKILL of a process. 'exit': it calls `process.exit(1)`. 'throw': it throws an error that
   * nothing catches. 'outOfMemory': it ends as if its heap were full, without filling it: a thread
   * with ERR_WORKER_OUT_OF_MEMORY, a process by SIGABRT.
   */
  how?: 'terminate' | 'exit' | 'throw' | 'outOfMemory' | undefined;
  /** How long to wait for the death, in milliseconds (default Infinity). */
  timeoutMs?: number | undefined;
  /** Calls the kill off, if the worker was not killed yet. */
  signal?: AbortSignal | undefined;
};

export type KilledWorker = {
  /** Index of the worker: `currentTask().workerIndex` of the function. */
  workerIndex: number;
  /** How the cluster saw the worker end, an UnavailableError; after 'throw' its `cause` is the error. */
  error: Error;
};

/**
 * Kills the worker that runs a function of that name, or the next that begins one, in the middle of
 * it: the function has begun, and its result has not been sent. The cluster then does what it does
 * after any death: it starts another worker, and runs the function again, unless `retries` are used
 * up. Works for clusters of threads and of processes of this machine (LocalStrategy); call it in
 * the thread that has made the cluster.
 *
 * Call it before you schedule the function, and no luck is needed: the worker is told before the
 * function begins. 'terminate' then ends a function that computes without end, too. The other ways
 * need the worker's event loop: they come when the function returns a promise, or when it ends,
 * before its result is sent. A function that is running already when `killWorker` is called is
 * killed when it returns to the event loop; a thread that is terminated, at once.
 *
 * @returns a promise that resolves when the worker is gone
 * @throws (rejects) DeadlineExceededError: no worker was killed within `timeoutMs`; the kill is
 *   called off; CancelledError: the cluster was stopped or closed first; the reason of
 *   `options.signal`; FailedPreconditionError: the cluster has no LocalStrategy;
 *   InvalidArgumentError: the module has no such function; TypeError, RangeError
 */
export async function killWorker(
  cluster: ClusterCoordinator,
  options?: KillWorkerOptions,
): Promise<KilledWorker> {
  if (!(cluster instanceof ClusterCoordinator)) {
    throw invalidType('cluster', 'an instance of ClusterCoordinator', cluster);
  }
  const given = checkOptions('options', options);
  const { function: name, how = 'terminate', timeoutMs = Number.POSITIVE_INFINITY, signal } = given;
  if (name !== undefined) checkString('options.function', name);
  if (!HOW_TO_DIE.includes(how)) {
    const ways = HOW_TO_DIE.map((each) => `'${each}'`).join(', ');
    throw invalidType('options.how', `one of ${ways}`, how);
  }
  checkDuration('options.timeoutMs', timeoutMs);
  if (signal !== undefined) checkSignal('options.signal', signal);
  const pool = poolOf(cluster.strategy);
  if (pool === undefined) {
    throw new FailedPreconditionError(
      'killWorker() kills workers of a LocalStrategy: end the process of a node yourself',
    );
  }
  if (name !== undefined && pool.functions?.includes(name) === false) {
    throw new InvalidArgumentError(
      `The module ${cluster.strategy.module.href} has no function '${name}'`,
    );
  }
  if (signal?.aborted) throw signal.reason;

  const killed = new AbortController();
  let dead: KilledWorker | undefined;
  const order: KillOrder = {
    name,
    how,
    killed(workerIndex, error) {
      dead = { workerIndex, error };
      killed.abort();
    },
  };
  const ends = signal === undefined ? killed.signal : AbortSignal.any([killed.signal, signal]);
  const waiting = cluster.coordinator.waitForStop(timeoutMs, { signal: ends });
  pool.orderKill(order);
  let isStopped = false;
  try {
    isStopped = await waiting;
  } catch (error) {
    if (dead === undefined) throw error;
  } finally {
    pool.withdrawKill(order);
  }
  if (dead !== undefined) return dead;
  const which = name === undefined ? 'a function' : `'${name}'`;
  if (isStopped) {
    throw new CancelledError(
      `The cluster was stopped before a worker that runs ${which} was killed`,
    );
  }
  throw new DeadlineExceededError(
    `No worker that runs ${which} died within ${timeoutMs} ms. Was it scheduled after killWorker() was called?`,
  );
}
