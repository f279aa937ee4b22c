/** What a function can ask about its own run. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { FailedPreconditionError } from '../../errors/errors.ts';

export type CurrentTask = {
  /** Aborts when the run is cancelled, times out, another has failed, or the cluster stops. */
  readonly signal: AbortSignal;
  /** The same for code that does not yield to the event loop. */
  shouldStop(): boolean;
  /** Of the worker that runs it, from 0. */
  readonly workerIndex: number;
  /** Which try it is, from 1. */
  readonly attempt: number;
};

const tasks = new AsyncLocalStorage<CurrentTask>();

export function runAsTask<T>(task: CurrentTask, body: () => T): T {
  return tasks.run(task, body);
}

/**
 * About the scheduled or data set function that the caller runs in.
 *
 * @throws FailedPreconditionError: it runs in none
 */
export function currentTask(): CurrentTask {
  const task = tasks.getStore();
  if (task !== undefined) return task;
  throw new FailedPreconditionError('currentTask() is for functions that a cluster runs');
}
