// Which uses of a queue keep an event loop alive, and which do not. argv: the name of a story
// below, and `worker` to run it in a worker. If nothing keeps the event loop alive during an
// `await` of the main module, Node ends the process with exit code 13.
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { say } from './say.mjs';

const coord = new Coordinator();
const queue = new BoundedQueue({ capacity: 1, coordinator: coord });
const none = new BoundedQueue({ capacity: 1, coordinator: coord });

/** Runs `operation` on the queue in a worker that does not keep this event loop alive. */
function meanwhile(operation, handle) {
  new Worker(new URL(import.meta.url), { argv: [operation], workerData: handle }).unref();
}

const names = async (waits) =>
  (await Promise.allSettled(waits)).map(({ reason }) => reason?.name ?? 'none');

const stories = {
  async 'pending dequeue'() {
    meanwhile('put', none.handle);
    say('ended', { item: await none.dequeue() });
  },
  async 'pending enqueue'() {
    queue.enqueueSync(1);
    meanwhile('take', queue.handle);
    await queue.enqueue(2);
    say('ended', { size: queue.size });
  },
  async 'stopped wait'() {
    coord.stopAfter(50); // a deadline does not keep the event loop alive
    say('ended', { error: await none.dequeue().catch(({ name }) => name) });
  },
  async 'idle queue'() {
    void none.handle;
    queue.enqueueSync('nobody takes it');
    say('ended');
  },
  async 'settled waits'() {
    const waits = [none.dequeue(), none.dequeue()];
    await none.enqueue(1);
    await none.enqueue(2);
    say('ended', { items: await Promise.all(waits) });
  },
  async 'timed-out waits'() {
    queue.enqueueSync(1);
    const waits = [queue.enqueue(2, { timeoutMs: 5 }), none.dequeue({ timeoutMs: 5 })];
    say('ended', { errors: await names(waits) });
  },
  async 'aborted waits'() {
    queue.enqueueSync(1);
    const controller = new AbortController();
    const { signal } = controller;
    const waits = [queue.enqueue(2, { signal, timeoutMs: 1e6 }), none.dequeue({ signal })];
    controller.abort();
    say('ended', { errors: await names(waits) });
  },
  async 'closed queue'() {
    queue.enqueueSync(1);
    const waits = [queue.enqueue(2), none.dequeue()];
    queue.close({ cancelPendingEnqueues: true });
    none.close();
    say('ended', { errors: await names(waits) });
  },
  put: () => BoundedQueue.attach(workerData).enqueueSync('from a worker'),
  take: () => BoundedQueue.attach(workerData).dequeueSync(),
};

const [story, where] = process.argv.slice(2);
if (where === 'worker' && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: [story, where] });
  // The worker ends only because nothing keeps its event loop alive any more.
  const [code] = await once(worker, 'exit');
  say('worker ended', { code });
} else await stories[story]();
