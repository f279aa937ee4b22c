// The op of a QueueRunner, in a worker, prints more than a pipe holds, and ends at once.
import { BoundedQueue, QueueRunner } from 'allstop';
import { say } from './say.mjs';

const text = `
  export default function print() {
    for (let line = 0; line < 5_000; line++) console.log(JSON.stringify({ event: 'line', line }));
    throw Object.assign(new Error(), { name: 'OutOfRangeError' });
  };
  process.once('exit', () => console.log('{"event":"exit"}'));`;
const op = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
const queue = new BoundedQueue({ capacity: 1 });
const [thread] = new QueueRunner(queue, [op]).createThreads({ start: true });
await thread.join();
say('ended', { closed: queue.closed });
