/** The coordinator of a pool or cluster: one in the program, and one in each other process. */

import { attachmentOf } from '../../coordinator/attachment.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { setCurrent } from '../../coordinator/threads/workers.ts';
import { threadNameOf } from '../../record/stop-record.ts';

/**
 * Makes the coordinator for this process's part in a pool or cluster, which messages call by its
 * name: `name` is 'pool' or 'cluster'. It cannot be cleared. Without
 * `worker` it is the program's: the arbiter of stops. With `worker` it is that of a worker process
 * or node: `Coordinator.current()` finds it there, and its stop records are provisional until the
 * arbiter has answered. The stop of `parent` is its stop, but not the other way round.
 */
export function clusterCoordinator(
  name: string,
  worker?: { job: string; index: number },
  parent?: Coordinator,
): Coordinator {
  const options = { name };
  const coordinator = parent === undefined ? new Coordinator(options) : parent.child(options);
  const attachment = attachmentOf(coordinator);
  // A clear could not bring back the workers, or the functions that the stop has cancelled.
  attachment.native.forbidClear();
  if (worker !== undefined) {
    attachment.native.awaitAnswer();
    setCurrent(attachment, threadNameOf(worker.job, worker.index));
  }
  return coordinator;
}
