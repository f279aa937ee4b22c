/** What the Worker of an enqueue op executes that is given by URL. */

import type { QueueHandle } from '../coordinator/handle.ts';
import { defaultOf, ownCoordinator } from '../coordinator/worker-module.ts';
import { hold, release } from '../native/doorbell.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { runOp } from './queue-runner-loop.ts';

/** Its `workerData`. */
export type QueueRunnerWork = {
  kind: 'queue-runner';
  module: string;
  queue: QueueHandle;
  queueClosedTypes: string[];
  /** Whether the coordinator is the program's, and not just ours. */
  hasCoordinator: boolean;
  /** The generation as of which a stop concerns the thread. */
  since: number;
};

export async function runQueueRunner(work: QueueRunnerWork): Promise<void> {
  const { module, queue, queueClosedTypes, hasCoordinator, since } = work;
  // Before anything can fail: from here on an uncaught error is encoded.
  const { coord, attachment } = ownCoordinator();
  const op = await defaultOf(module, 'an op');
  const attached = BoundedQueue.attach(queue);
  hold(); // an op may wait for what does not keep this thread alive by itself
  await runOp(
    () => op(attached, hasCoordinator ? coord : undefined),
    () => attachment.shouldStop() || attachment.native.generation() !== since,
    queueClosedTypes,
  );
  release();
}
