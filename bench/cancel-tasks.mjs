// The tasks of cancel.mjs: one that ends at once, and a loop that looks at a coordinator.
import { BroadcastChannel, threadId } from 'node:worker_threads';
import { currentCall } from '../dist/cluster/index.js';
import { Coordinator } from '../dist/index.js';

const begun = new BroadcastChannel('cancel-tasks');
begun.unref();

/** For Piscina and tinypool, and, with the task in `data`, for BullMQ. */
export default function task(given) {
  const { quick: isQuick, stop } = given.data ?? given;
  if (isQuick) return { threadId };
  const coord = Coordinator.attach(stop);
  begun.postMessage('begun');
  while (!coord.shouldStop());
  throw new Error('cancelled');
}

export const quick = () => ({ threadId });

export function spin() {
  const self = currentCall();
  begun.postMessage('begun');
  while (!self.shouldStop());
}
