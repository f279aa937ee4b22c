/** Ten million items through a queue: whether the memory of the process grows. */

import { Worker } from 'node:worker_threads';
import { BoundedQueue } from '../dist/index.js';
import { addon } from './addon.mjs';
import { quick, report } from './rounds.mjs';

const MILLION = quick ? 1_000 : 1_000_000;
const MILLIONS = 10;
const WARM_UP = 2;

const toMb = (bytes) => bytes / 2 ** 20;

/** The megabytes of the process after each million items, without the first two million. */
async function megabytes(queue) {
  const after = [];
  for (let million = 1; million <= MILLIONS; million++) {
    for (let received = 0; received < MILLION; ) {
      received += (await queue.dequeueMany(Math.min(1024, MILLION - received))).length;
    }
    globalThis.gc();
    if (million > WARM_UP) after.push(toMb(process.memoryUsage.rss()));
  }
  return after;
}

async function halves(queue) {
  const after = await megabytes(queue);
  const half = after.length / 2;
  return { ours: after.slice(half), peer: after.slice(0, half) };
}

const bytes = new BoundedQueue({ capacity: 1024, codec: 'bytes' });
addon.produce(bytes, MILLION * MILLIONS);
const fromNative = await halves(bytes);

const values = new BoundedQueue({ capacity: 1024 });
const worker = new Worker(new URL('./queue-worker.mjs', import.meta.url), {
  workerData: values.handle,
});
worker.postMessage({ kind: 'queue', items: MILLION * MILLIONS });
const fromWorker = await halves(values);
await worker.terminate();
report({ 'queue/memory-native': fromNative, 'queue/memory-worker': fromWorker });
