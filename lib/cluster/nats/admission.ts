/** Whether a node can take part, and as what. */

import type { Explanation } from './connection-failure.ts';
import type { Task, Tasks } from './expected.ts';
import { type NodeInfo, PROTOCOL } from './wire.ts';

/** How much of a machine's memory a thread needs at least. */
const BYTES_PER_SLOT = 32 * 1024 * 1024;

export type Refusal = { phase: string } & Explanation;

/** `refusal`: it cannot; `task`: it would have been that. */
export type Admission =
  | { task: Task; refusal?: undefined }
  | { task?: Task | undefined; refusal: Refusal };

/** `definition`: of the coordinator's module. */
export function admit(info: NodeInfo, tasks: Tasks, definition: string): Admission {
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
  const refusal = problemOf(info, definition);
  return refusal === undefined ? { task } : { task, refusal };
}

function problemOf(info: NodeInfo, definition: string): Refusal | undefined {
  const { protocol, version, slots, freeMemory, host } = info;
  if (protocol !== PROTOCOL) {
    return {
      phase: 'version-mismatch',
      cause: `the worker speaks protocol ${protocol} (allstop ${version}), the coordinator ${PROTOCOL}`,
      remedy: 'install the same version of allstop on both',
    };
  }
  if (info.definition !== definition) {
    return {
      phase: 'definition-mismatch',
      cause:
        `the worker's module is not the coordinator's: ${info.definition.slice(0, 12)} there, ` +
        `${definition.slice(0, 12)} here`,
      remedy: 'deploy the same file, and start the worker again',
    };
  }
  const needed = slots * BYTES_PER_SLOT;
  if (freeMemory >= needed) return undefined;
  return {
    phase: 'insufficient-resources',
    cause: `${host} has ${inMegabytes(freeMemory)} of free memory, and ${slots} threads need ${inMegabytes(needed)}`,
    remedy: 'start the worker with fewer --slots, or free memory',
  };
}

const inMegabytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MB`;
