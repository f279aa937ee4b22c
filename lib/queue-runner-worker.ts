/** What the Worker of an enqueue op executes that is given by URL. */

import { workerData } from 'node:worker_threads';
import { Attachment, hold, release } from './attachment.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { Coordinator } from './coordinator.ts';
import type { QueueHandle } from './handle.ts';
import { runOp } from './queue-runner-loop.ts';

/** Its `workerData`. */
export type QueueRunnerWork = {
  module: string;
  queue: QueueHandle;
  queueClosedTypes: string[];
  /** Whether the coordinator is the program's, and not just ours. */
  hasCoordinator: boolean;
  /** The generation as of which a stop concerns the thread. */
  since: number;
};

const { module, queue, queueClosedTypes, hasCoordinator, since } = workerData as QueueRunnerWork;
// Before anything can fail: from here on an uncaught error is encoded.
const coord = Coordinator.current();
const attachment = coord && Attachment.behind(coord);
if (attachment === undefined) throw new Error('This module is for the workers of queue runners');

const { default: op } = (await import(module)) as { default?: unknown };
if (typeof op !== 'function') {
  throw new TypeError(`The module ${module} of an op has no function as its default export`);
}
const attached = BoundedQueue.attach(queue);
hold(); // an op may wait for what does not keep this thread alive by itself
await runOp(
  () => op(attached, hasCoordinator ? coord : undefined),
  () => attachment.shouldStop() || attachment.native.generation() !== since,
  queueClosedTypes,
);
release();
