/** The coordinator of a cluster: one in the program, and one in each other process. */

import { attachmentOf } from '../../coordinator/attachment.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { setCurrent } from '../../coordinator/threads/workers.ts';
import { threadNameOf } from './requesters.ts';

/**
 * Makes `clearStop()` throw: the workers, and the functions that the stop has cancelled, would
 * not come back.
 */
export function refuseClear(coordinator: Coordinator): void {
  attachmentOf(coordinator).refuseClear =
    'The coordinator of a cluster cannot be cleared: make a new ClusterCoordinator';
}

/**
 * A coordinator for this process's part in a cluster, which cannot be cleared. The program's
 * (without `worker`) is the arbiter of stops. In a worker process, or a node, it is what
 * `Coordinator.current()` finds, and its stop records are provisional until the arbiter has
 * answered.
 */
export function clusterCoordinator(worker?: { job: string; index: number }): Coordinator {
  const coordinator = new Coordinator({ name: 'cluster' });
  refuseClear(coordinator);
  if (worker !== undefined) {
    const attachment = attachmentOf(coordinator);
    attachment.native.awaitAnswer();
    setCurrent(attachment, threadNameOf(worker.job, worker.index));
  }
  return coordinator;
}
