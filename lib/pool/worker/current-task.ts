/** `currentTask()`: what a function can learn about its own attempt. */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Variable, VariableValue } from '../../cluster/variables/variable.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';

/** The attempt of a function in which the caller runs. */
export type CurrentTask = {
  /**
   * Aborts when the function is cancelled or times out, another function has failed, or the cluster
   * stops.
   */
  readonly signal: AbortSignal;
  /** Whether the function should end, for code that does not yield to the event loop. */
  shouldStop(): boolean;
  /** Index of the worker that runs the function, from 0. */
  readonly workerIndex: number;
  /** 1 on the first attempt, one more after each loss of a worker. */
  readonly attempt: number;
  /**
   * The cluster's variable of this name, which `cluster.variable` has made.
   *
   * @throws TypeError: `name` is not a string; InvalidArgumentError: no variable has this name
   */
  variable<T extends VariableValue>(name: string): Variable<T>;
  /**
   * Tells the caller how far the function is: `value`, which is copied, comes out of
   * `RemoteValue.progress` and goes to `onProgress`. Of values that come faster than messages go
   * (one in 10 ms) the oldest are dropped when there are more than 4,096, or 256 KiB. Does nothing
   * after the function has ended, nor in a data set function.
   *
   * @throws DataCloneError: the value cannot be cloned, or shares memory
   */
  report(value: unknown): void;
};

const tasks = new AsyncLocalStorage<CurrentTask>();

export function runAsTask<T>(task: CurrentTask, body: () => T): T {
  return tasks.run(task, body);
}

/** The attempt in which the caller runs; undefined outside scheduled functions. */
export const taskOfCaller = (): CurrentTask | undefined => tasks.getStore();

/**
 * The attempt of the scheduled function, or data set function, that calls `currentTask`.
 *
 * @example
 * ```js
 * // tasks.mjs: a function of the cluster that ends when it is cancelled
 * import { setTimeout } from 'node:timers/promises';
 * import { currentTask } from 'allstop/cluster';
 *
 * export async function watch(path) {
 *   const { signal, attempt } = currentTask();
 *   for (let round = 1; ; round++) {
 *     currentTask().report({ path, attempt, round });
 *     await setTimeout(1_000, undefined, { signal });
 *   }
 * }
 * ```
 * @throws FailedPreconditionError: the caller was not scheduled on a cluster
 */
export function currentTask(): CurrentTask {
  const task = tasks.getStore();
  if (task !== undefined) return task;
  throw new FailedPreconditionError(
    'currentTask() was called outside a function scheduled on a cluster',
  );
}
