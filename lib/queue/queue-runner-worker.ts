/** Runs in the Worker of a QueueRunner whose enqueue op is given by URL. */

import type { QueueHandle } from '../coordinator/handle.ts';
import { defaultOf, ownCoordinator } from '../coordinator/threads/worker-module.ts';
import { hold, release } from '../native/doorbell.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { runOp } from './queue-runner-loop.ts';

/** The `workerData` of the Worker. */
export type QueueRunnerWork = {
  kind: 'queue-runner';
  module: string;
  /** For people: "the op 'read' of the QueueRunner 'lines'". */
  title: string;
  queue: QueueHandle;
  queueClosedTypes: string[];
  /**
   * Whether the program gave a coordinator. Without one the Worker still has a coordinator, which
   * only carries the op's error and is not passed to the op.
   */
  hasCoordinator: boolean;
  /** The generation of the coordinator at the start: a later one means that a stop has happened. */
  since: number;
};

export async function runQueueRunner(work: QueueRunnerWork): Promise<void> {
  const { module, title, queue, queueClosedTypes, hasCoordinator, since } = work;
  // First: as of here an uncaught error of this Worker reaches the coordinator with all its fields.
  const { coord, attachment } = ownCoordinator();
  const op = await defaultOf(module, title);
  const attached = BoundedQueue.attach(queue);
  hold(); // an op may await something that does not keep the event loop alive
  await runOp(
    () => op(attached, hasCoordinator ? coord : undefined),
    () => attachment.shouldStop() || attachment.native.generation() !== since,
    queueClosedTypes,
  );
  release();
}
