/** Runs in the Worker of a QueueRunner whose enqueue op is given by URL. */

import { isOfType } from '../base/thrown-value.ts';
import { turn } from '../base/timer.ts';
import type { QueueHandle } from '../coordinator/handle.ts';
import { runModule } from '../coordinator/threads/worker-module.ts';
import type { WorkOfModule } from '../coordinator/threads/workers.ts';
import { BoundedQueue } from './bounded-queue.ts';

// The loop of one enqueue op, on the program's thread or in a Worker.

const CANCELLED = ['CancelledError'];

/**
 * Calls `op` again and again until a stop is requested or the op throws. The event loop turns
 * before each call.
 *
 * @throws (rejects) the op's error, except errors of `queueClosedTypes`, and a CancelledError
 *   after a stop: both end the loop quietly
 */
export async function runOp(
  op: () => unknown,
  stopWasRequested: () => boolean,
  queueClosedTypes: readonly string[],
): Promise<void> {
  for (;;) {
    await turn();
    if (stopWasRequested()) return;
    try {
      await op();
    } catch (error) {
      if (isOfType(error, queueClosedTypes)) return;
      if (stopWasRequested() && isOfType(error, CANCELLED)) return;
      throw error;
    }
  }
}

/** The `workerData` of the Worker. */
export type QueueRunnerWork = WorkOfModule & {
  kind: 'queue-runner';
  /** For people: "the op 'read' of the QueueRunner 'lines'". */
  title: string;
  queue: QueueHandle;
  queueClosedTypes: string[];
  /**
   * Whether the program gave a coordinator. Without one the Worker still has a coordinator, which
   * only carries the op's error and is not passed to the op.
   */
  hasCoordinator: boolean;
};

export function runQueueRunner(work: QueueRunnerWork): Promise<void> {
  const { module, title, queue, queueClosedTypes, hasCoordinator, since } = work;
  return runModule(module, title, (op, attachment, coord) => {
    const attached = BoundedQueue.attach(queue);
    return runOp(
      () => op(attached, hasCoordinator ? coord : undefined),
      () => attachment.shouldStop() || attachment.native.generation() !== since,
      queueClosedTypes,
    );
  });
}
