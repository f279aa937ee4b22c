/** Whether a node can take part, and as what. */

import type { NodeInfo } from '../wire/control-messages.ts';
import { type Fingerprints, type Refusal, whyUnfit } from './requirements.ts';
import type { ClusterTask, ClusterTasks } from './tasks.ts';

/** `refusal`: it cannot; `task`: it would have been that. */
export type Admission =
  | { task: ClusterTask; refusal?: undefined }
  | { task?: ClusterTask | undefined; refusal: Refusal };

export function admit(info: NodeInfo, tasks: ClusterTasks, own: Fingerprints): Admission {
  const task = tasks.find(info);
  if ('why' in task) {
    return { refusal: { phase: 'not-expected', cause: task.why, remedy: task.remedy } };
  }
  if (task.session !== undefined) {
    const by = `${task.session.info.host} (pid ${task.session.info.pid})`;
    const cause = `${task.job}:${task.index} is taken by ${by}`;
    const remedy = 'end one of the two, or give this one another --task';
    return { refusal: { phase: 'task-taken', cause, remedy } };
  }
  const refusal = whyUnfit(info, own);
  if (refusal === undefined) return { task };
  return tasks.has(task) ? { task, refusal } : { refusal };
}
