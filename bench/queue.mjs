/** Throughput of small items through a queue. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { BoundedQueue } from '../dist/index.js';
import { addon } from './addon.mjs';
import { inTurn, quick, report } from './rounds.mjs';

const CAPACITY = 1024;
const ITEMS = quick ? 2_000 : 100_000;

/** Nanoseconds per item, measured from the first to the last item. */
async function nsPerItem(run) {
  const start = process.hrtime.bigint();
  await run();
  return Number(process.hrtime.bigint() - start) / ITEMS;
}

async function drain(queue) {
  for (let received = 0; received < ITEMS; ) {
    const items = await queue.dequeueMany(CAPACITY);
    received += items.length;
  }
}

const bytes = new BoundedQueue({ capacity: CAPACITY, codec: 'bytes' });
const fromNative = await inTurn({
  rounds: 15,
  samples: 3,
  ours: () =>
    nsPerItem(() => {
      addon.produce(bytes, ITEMS);
      return drain(bytes);
    }),
  peer: () =>
    nsPerItem(
      () =>
        new Promise((resolve) => {
          let received = 0;
          addon.call(() => {
            if (++received === ITEMS) resolve();
          }, ITEMS);
        }),
    ),
});

const values = new BoundedQueue({ capacity: CAPACITY });
const worker = new Worker(new URL('./queue-worker.mjs', import.meta.url), {
  workerData: values.handle,
});
await once(worker, 'message');
const fromWorker = await inTurn({
  rounds: 15,
  samples: 3,
  ours: () =>
    nsPerItem(() => {
      worker.postMessage({ kind: 'queue', items: ITEMS });
      return drain(values);
    }),
  peer: () =>
    nsPerItem(
      () =>
        new Promise((resolve) => {
          let received = 0;
          const onMessage = () => {
            if (++received < ITEMS) return;
            worker.off('message', onMessage);
            resolve();
          };
          worker.on('message', onMessage);
          worker.postMessage({ kind: 'port', items: ITEMS });
        }),
    ),
});
await worker.terminate();

report({ 'queue/native-js': fromNative, 'queue/worker-main': fromWorker });
