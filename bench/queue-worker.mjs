/** A worker of queue.mjs: the producer. */

import { parentPort, workerData } from 'node:worker_threads';
import { BoundedQueue } from '../dist/index.js';

const queue = BoundedQueue.attach(workerData);

parentPort.on('message', ({ kind, items }) => {
  for (let id = 0; id < items; id++) {
    const item = { id, name: 'item', ok: true, value: 1.5 };
    if (kind === 'queue') queue.enqueueSync(item);
    else parentPort.postMessage(item);
  }
});
parentPort.postMessage('ready');
