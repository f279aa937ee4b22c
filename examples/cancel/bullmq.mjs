// A job of BullMQ is cancelled by Ctrl-C, and its worker thread goes on with the next one. Needs a
// Redis server: argv[2] is its port.
import { Queue, QueueEvents, Worker } from 'bullmq';
import { cancellable } from './cancellable.mjs';

const connection = { host: '127.0.0.1', port: Number(process.argv[2] ?? 6379) };
const name = `searches-${process.pid}`; // a handle is of use in this process only
const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
const worker = new Worker(name, new URL('./bullmq-job.mjs', import.meta.url), {
  connection,
  useWorkerThreads: true,
});
await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());

const search = (task, signal) =>
  cancellable(signal, async (stop) => {
    const job = await queue.add('search', { ...task, stop });
    return job.waitUntilFinished(events);
  });

const { threadId } = await search({ from: 1, ending: 21 }, interrupted.signal);
worker.once('active', () => console.log('searching until Ctrl-C'));
try {
  await search({ from: 1, ending: 22 }, interrupted.signal); // no square ends with 22
} catch (error) {
  console.log(error.name);
}
const next = await search({ from: 1, ending: 21 }, new AbortController().signal);
console.log(next.threadId === threadId ? 'the same thread goes on' : 'another thread goes on');
await worker.close();
await events.close();
await queue.obliterate({ force: true });
await queue.close();
