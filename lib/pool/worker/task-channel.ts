/**
 * The tracing channel `allstop:cluster:task`: the life of a call where it was made, and each attempt
 * where it runs. Subscribers come from `diagnostics_channel.tracingChannel('allstop:cluster:task')`.
 */

import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { isThenable } from '../../base/thrown-value.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { CoordinatorMessage } from '../../events/spine.ts';

/** What subscribers of `allstop:cluster:task` get: the same object from `start` to `asyncEnd`. */
export type TaskMessage = CoordinatorMessage & {
  /**
   * 'caller': the whole life of the call, in the thread that made it: `start` when it is queued,
   * `asyncEnd` when its value has settled. 'worker': one attempt, in the thread that runs it.
   */
  side: 'caller' | 'worker';
  /** The name of the function. */
  name: string;
  /** Which call: the same number on both sides, unique in the cluster's process for a long time. */
  call: number;
  /** The number of the attempt, from 1. On the caller's side: of the last one so far. */
  attempt: number;
  /** The index of the worker that runs it: on the worker's side. */
  workerIndex?: number;
  /** What the function returned. */
  result?: unknown;
  /** What it has failed of, or was cancelled with. */
  error?: unknown;
};

const TASK: TracingChannel<string, TaskMessage> = tracingChannel('allstop:cluster:task');

/** Whether anything subscribes in this thread. (Older runtimes have no `TASK.hasSubscribers`.) */
export const isTaskTraced = (): boolean =>
  TASK.start.hasSubscribers ||
  TASK.asyncEnd.hasSubscribers ||
  TASK.end.hasSubscribers ||
  TASK.asyncStart.hasSubscribers ||
  TASK.error.hasSubscribers;

/** What the messages about a coordinator begin with. */
export function aboutOf(coordinator: object): CoordinatorMessage {
  const { name, id } = attachmentOf(coordinator).native;
  return { coordinator: name, coordinatorId: id };
}

/** Publishes the synchronous part of `message` around `body`, with the stores bound to `start`. */
export function traceStart<T>(message: TaskMessage, body: () => T): T {
  return TASK.start.runStores(message, () => {
    try {
      return body();
    } catch (error) {
      message.error = error;
      TASK.error.publish(message);
      throw error;
    } finally {
      TASK.end.publish(message);
    }
  });
}

/** Publishes that what `message` is about has ended. */
export function traceEnd(
  message: TaskMessage,
  outcome: { result: unknown } | { error: unknown },
): void {
  Object.assign(message, outcome);
  if ('error' in outcome) TASK.error.publish(message);
  TASK.asyncStart.publish(message);
  TASK.asyncEnd.publish(message);
}

/** Publishes the run of a function, which may return a promise. */
export function traceRun(message: TaskMessage, run: () => unknown): unknown {
  return traceStart(message, () => {
    const value = run();
    if (!isThenable(value)) {
      message.result = value;
      return value;
    }
    return new Promise((resolve) => resolve(value)).then(
      (result) => {
        traceEnd(message, { result });
        return result;
      },
      (error: unknown) => {
        traceEnd(message, { error });
        throw error;
      },
    );
  });
}
