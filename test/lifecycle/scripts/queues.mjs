// Threads that end while they use a queue. argv: the name of a story below, and its arguments.
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { BoundedQueue } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

/** Resolves when the waits that this thread has begun are registered with the native queue. */
async function waiting() {
  await setImmediate();
  await setImmediate();
}

/** Starts the function `what` of `there` in a worker; resolves when that function calls begun(). */
async function start(what, queue, more) {
  const data = { what, handle: queue?.handle, more };
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  const [begun] = await once(worker, 'message');
  return { worker, begun };
}

const begun = (value = 'begun') => parentPort.postMessage(value);

/** Blocks the thread without turning its event loop; only the end of the worker ends this. */
function blockForEver() {
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

const there = {
  dequeueSync(queue) {
    begun();
    queue.dequeueSync();
  },
  enqueueSync(queue) {
    begun();
    queue.enqueueSync('too much');
  },
  async dequeue(queue) {
    void queue.dequeue();
    void queue.dequeueMany(5);
    await waiting();
    begun();
  },
  async enqueue(queue) {
    void queue.enqueue('too much');
    void queue.enqueue('too much');
    await waiting();
    begun();
  },
  // Deaf: this thread blocks, so it never learns that there is an item for it, or room.
  async 'dequeue, deaf'(queue) {
    void queue.dequeue();
    await waiting();
    begun();
    blockForEver();
  },
  async 'enqueue, deaf'(queue) {
    void queue.enqueue('of the deaf one');
    await waiting();
    begun();
    blockForEver();
  },
  async 'dequeue twice, and exit'(queue, gate) {
    const waits = [queue.dequeue(), queue.dequeue(), queue.dequeueMany(3)];
    await waiting();
    begun();
    Atomics.wait(gate, 0, 0); // until the queue has items for all three waits
    await waits[0];
    process.exit();
  },
  async 'own a queue'(_, how) {
    const queue = new BoundedQueue({ capacity: 4, codec: 'bytes' });
    const seen = new Int32Array(new SharedArrayBuffer(4 * 2 * 20_000));
    void queue.dequeue(); // with a pending wait, native threads ring this worker's doorbell
    void queue.dequeueMany(3).catch(() => {});
    await waiting();
    addon.queueConsume(queue, seen, 20_000, 'consumer');
    addon.queueProduce(queue, 0, 20_000, 'producer-0');
    addon.queueProduce(queue, 1, 20_000, 'producer-1');
    begun({ handle: queue.handle, seen });
    if (how === 'ends') process.exit();
    parentPort.on('message', () => {});
  },
  'attach and put'(queue) {
    queue.enqueueSync('from there');
    begun();
  },
};

const stories = {
  async terminate(how, count) {
    const queue = new BoundedQueue({ capacity: 1 });
    if (how.startsWith('enqueue')) queue.enqueueSync('full');
    const started = await Promise.all(Array.from({ length: count }, () => start(how, queue)));
    const codes = await Promise.all(started.map(({ worker }) => worker.terminate()));
    const before = queue.size;
    // The waits of the terminated workers must not keep the queue from later enqueues.
    if (how.startsWith('enqueue')) queue.dequeueSync();
    queue.enqueueSync('later', 10_000);
    const item = await queue.dequeue();
    queue.close();
    const end = await queue.dequeue().catch(({ name }) => name);
    say('ended', { codes, before, item, end });
  },
  async exit(how, count) {
    const queue = new BoundedQueue({ capacity: 1 });
    if (how.startsWith('enqueue')) queue.enqueueSync('full');
    await Promise.all(Array.from({ length: count }, () => start(how, queue)));
    void queue.dequeueMany(2);
    process.exit(7);
  },
  async 'told of an item'() {
    const queue = new BoundedQueue({ capacity: 4 });
    const { worker } = await start('dequeue, deaf', queue);
    const wait = queue.dequeue(); // the second wait, after that of the worker
    await waiting();
    queue.enqueueSync('the item');
    await worker.terminate();
    say('ended', { item: await wait, size: queue.size });
  },
  async 'told of an item, before a thread that blocks'() {
    const queue = new BoundedQueue({ capacity: 4, codec: 'bytes' });
    const { worker } = await start('dequeue, deaf', queue);
    queue.enqueueSync(Buffer.from('the item'));
    addon.queueBlock(queue, 'dequeue', 'blocked'); // gets the item: a wait reserves nothing
    const item = addon.result('blocked');
    await worker.terminate();
    say('ended', { item, size: queue.size });
  },
  async 'told of room'() {
    const queue = new BoundedQueue({ capacity: 1 });
    queue.enqueueSync('first');
    const { worker } = await start('enqueue, deaf', queue);
    const wait = queue.enqueue('second');
    await waiting();
    const first = queue.dequeueSync();
    await worker.terminate();
    await wait;
    say('ended', { items: [first, queue.dequeueSync()], size: queue.size });
  },
  async 'the end of a closed queue'() {
    const queue = new BoundedQueue({ capacity: 1 });
    queue.enqueueSync('first');
    const { worker } = await start('enqueue, deaf', queue);
    queue.close();
    const items = [];
    const consumed = (async () => {
      for await (const item of queue) items.push(item);
    })();
    await waiting();
    await worker.terminate();
    await consumed;
    say('ended', { items });
  },
  async 'exit at the first of several'() {
    const queue = new BoundedQueue({ capacity: 9 });
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const { worker } = await start('dequeue twice, and exit', queue, gate);
    const exited = once(worker, 'exit');
    for (let i = 0; i < 5; ++i) queue.enqueueSync(i);
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    await exited;
    queue.close();
    const items = [];
    for await (const item of queue) items.push(item);
    say('ended', { items });
  },
  async 'collected while it waits'() {
    const gone = [];
    const registry = new FinalizationRegistry((i) => gone.push(i));
    const waits = [];
    const handles = [];
    (() => {
      for (let i = 0; i < 50; ++i) {
        const queue = new BoundedQueue({ capacity: 1 });
        registry.register(queue, i);
        handles.push(queue.handle);
        waits.push(queue.dequeue());
      }
    })();
    await waiting();
    for (let i = 0; i < 10; ++i) {
      globalThis.gc();
      await setImmediate();
    }
    const early = gone.length;
    for (const handle of handles) BoundedQueue.attach(handle).enqueueSync('late');
    const items = await Promise.all(waits);
    waits.length = 0;
    // 49 of 50: a stack frame may still refer to the last object.
    for (let i = 0; i < 100 && gone.length < 49; ++i) {
      globalThis.gc();
      await setImmediate();
    }
    say('ended', {
      early,
      late: items.filter((item) => item === 'late').length,
      collected: gone.length,
    });
  },
  async 'collected after its handle was read'() {
    const gone = [];
    const registry = new FinalizationRegistry((name) => gone.push(name));
    const handle = (() => {
      const queue = new BoundedQueue({ capacity: 5, name: 'kept' });
      registry.register(queue, queue.name);
      queue.enqueueSync('from here');
      return queue.handle;
    })();
    for (let i = 0; i < 100 && gone.length === 0; ++i) {
      globalThis.gc();
      await setImmediate();
    }
    await start('attach and put', { handle });
    const queue = BoundedQueue.attach(handle);
    say('ended', { gone, name: queue.name, items: await queue.dequeueMany(5) });
  },
  async 'stale handles'() {
    const { worker, begun: handle } = await start('lend', undefined);
    const exited = once(worker, 'exit');
    worker.postMessage('end');
    await exited;
    let code;
    try {
      BoundedQueue.attach(handle);
    } catch (error) {
      ({ code } = error);
    }
    say('ended', { code });
  },
  async 'environment gone'(how) {
    const { worker, begun: lent } = await start('own a queue', undefined, how);
    const queue = BoundedQueue.attach(lent.handle);
    if (how === 'terminated') await worker.terminate();
    else if (worker.threadId !== -1) await once(worker, 'exit');
    const produced = [addon.result('producer-0'), addon.result('producer-1')];
    queue.close();
    const consumed = addon.result('consumer');
    // Some items may be missing: the two waits of the owner may have taken them before its end.
    const wrong = lent.seen.filter((count) => count > 1).length;
    const missing = lent.seen.filter((count) => count === 0).length;
    say('ended', { produced, consumed, wrong, missing });
  },
};

there.lend = () => {
  const queue = new BoundedQueue({ capacity: 1 });
  begun(queue.handle);
  parentPort.once('message', () => {});
};

if (isMainThread) {
  const [story, ...rest] = process.argv.slice(2);
  await stories[story](...rest);
} else {
  const { what, handle, more } = workerData;
  await there[what](handle && BoundedQueue.attach(handle), more);
  if (['dequeue', 'enqueue'].includes(what)) parentPort.on('message', () => {});
}
