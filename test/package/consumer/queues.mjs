// Uses queues, queue runners and loopers of the installed package, with their workers.
import assert from 'node:assert/strict';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';

const coord = new Coordinator();
const queue = new BoundedQueue({ capacity: 2, name: 'numbers', coordinator: coord });
const runner = new QueueRunner(queue, [new URL('./op.mjs', import.meta.url)]);
const [thread] = runner.createThreads({ coordinator: coord, start: true });
assert.equal(thread.name, 'QueueRunnerThread-numbers-op');
const numbers = [];
for await (const number of queue) numbers.push(number);
assert.deepEqual(numbers, [0, 1, 2, 3, 4]);
await coord.join();

const ticks = new BoundedQueue({ capacity: 1, coordinator: coord });
const url = new URL('./tick.mjs', import.meta.url);
LooperThread.loop(coord, 1, url, { args: [ticks.handle] });
assert.equal(await ticks.dequeue(), 'tick');
await ticks.dequeue();
coord.requestStop(); // the looper waits at a full queue, or is about to
await coord.join();
assert.equal(coord.stopRecord.suppressedCount, 0);
