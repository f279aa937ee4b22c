// A QueueRunner with its op in a worker fills one queue, and a looper in a worker fills another.
// Native threads and this thread empty the queues, until a stop ends all of them.
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const coord = new Coordinator();
const numbers = new BoundedQueue({ capacity: 8, coordinator: coord });
new QueueRunner(numbers, [new URL('./numbers-op.mjs', import.meta.url)]).createThreads({
  coordinator: coord,
  start: true,
});
let sum = 0;
for await (const { number } of numbers) sum += number;

const bytes = new BoundedQueue({ capacity: 2, codec: 'bytes', coordinator: coord });
LooperThread.loop(coord, 1, () => bytes.enqueue(new Uint8Array(3)), {
  name: 'here',
  missedTicks: 'skip',
});
addon.queueBlock(bytes, 'dequeue', 'consumer');
await bytes.dequeue();
coord.requestStop();
await coord.join();
const consumer = addon.result('consumer').split('|')[0];
say('ended', { sum, consumer, threads: coord.threads, suppressed: coord.stopRecord.suppressed });
