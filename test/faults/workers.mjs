// What workers may do to one another at the same time, with an addon that was built with
// ALLSTOP_FAULT_INJECTION (ALLSTOP_BINARY names it): its fault points delay the threads as the
// seed says, and each scenario checks what must hold in every order.
//
//   ALLSTOP_BINARY=FILE ALLSTOP_FAULT_SEED=N node test/faults/workers.mjs [SCENARIO...]
//
// Exit code 0: all held. scripts/test-faults.mjs ends a process that hangs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from '../../dist/index.js';

const seed = BigInt(process.env.ALLSTOP_FAULT_SEED ?? 1);

/** @returns a number from 0 to below `below`, the same for the same seed and `what` */
function draw(what, below) {
  let bits = seed * 0x9e3779b97f4a7c15n + BigInt(what);
  bits = BigInt.asUintN(64, (bits ^ (bits >> 30n)) * 0xbf58476d1ce4e5b9n);
  return Number((bits >> 33n) % BigInt(below));
}

const here = new URL(import.meta.url);

async function aborts(signal) {
  if (!signal.aborted) await once(signal, 'abort');
}

/** What a worker does; `data` is its workerData. */
const ROLES = {
  diesWithATask() {
    const coordinator = Coordinator.current();
    void coordinator.start(() => coordinator.waitForStop());
    setImmediate(() => {
      throw new TypeError('the cause');
    });
  },
  diesWithAWorker() {
    Coordinator.current().spawn(here, { workerData: { role: 'waits' } });
    setImmediate(() => {
      throw new TypeError('the cause');
    });
  },
  waits() {
    Coordinator.current().waitForStopSync();
  },
  waitsAndDequeues({ queue }) {
    BoundedQueue.attach(queue).dequeueSync();
  },
  async spawnsForEver() {
    const coordinator = Coordinator.current();
    for (;;) {
      const worker = coordinator.spawn(here, { workerData: { role: 'endsAtOnce' } });
      await once(worker, 'online');
    }
  },
  endsAtOnce() {
    Coordinator.current();
  },
  produces({ queue, from, to }) {
    const own = BoundedQueue.attach(queue);
    for (let i = from; i < to; ++i) own.enqueueSync(i);
  },
  async consumes({ queue, results }) {
    const own = BoundedQueue.attach(queue);
    const to = BoundedQueue.attach(results);
    for await (const item of own) await to.enqueue(item);
  },
  async stopsWith({ message }) {
    const coordinator = Coordinator.current();
    coordinator.requestStop(new RangeError(message));
    await aborts(coordinator.signal);
  },
  async abortsAndWaits() {
    const coordinator = Coordinator.current();
    await Promise.all([coordinator.waitForStop(), aborts(coordinator.signal)]);
  },
};

const spawn = (coordinator, role, data = {}) =>
  coordinator.spawn(here, { workerData: { role, ...data } });

const errorOf = (promise) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

const SCENARIOS = {
  /** The error of a worker that dies is the stop, not the loss of the threads that it watched. */
  async dies() {
    for (const role of ['diesWithATask', 'diesWithAWorker']) {
      const coordinator = new Coordinator();
      spawn(coordinator, role);
      const error = await errorOf(coordinator.join());
      assert.equal(`${error}`, 'TypeError: the cause', role);
    }
  },

  /** One of several errors is the record; every signal aborts and every wait and join ends. */
  async stops() {
    const coordinator = new Coordinator();
    const child = coordinator.child();
    const messages = ['first', 'second'];
    for (const message of messages) spawn(coordinator, 'stopsWith', { message });
    spawn(child, 'abortsAndWaits');
    const joins = Promise.all([coordinator, child].map((each) => errorOf(each.join())));
    await Promise.all([child.waitForStop(), aborts(child.signal)]);
    const [own, childs] = await joins;
    assert.ok(messages.includes(own.message), `${own}`);
    assert.equal(childs.message, own.message);
    assert.equal(coordinator.stopRecord.suppressedCount, 1);
    assert.equal(child.threads.length, 0);
  },

  /** A stop that is cleared at once ends the waits that had begun, and aborts the signal. */
  async clears() {
    const coordinator = new Coordinator();
    for (let round = 0; round < 5; ++round) {
      const { signal } = coordinator;
      const waits = [coordinator.waitForStop(), coordinator.waitForStop()];
      if (draw(round, 2) === 0) await new Promise(setImmediate);
      coordinator.requestStop();
      coordinator.clearStop();
      assert.deepEqual(await Promise.all(waits), [true, true]);
      await aborts(signal);
      assert.equal(coordinator.shouldStop(), false);
    }
  },

  /** Each item that went into a queue comes out once. */
  async queues() {
    const coordinator = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1 + draw(1, 3), coordinator });
    const results = new BoundedQueue({ capacity: 2, coordinator });
    const each = 40;
    const producers = new Coordinator();
    for (const from of [0, each]) {
      spawn(producers, 'produces', { queue: queue.handle, from, to: from + each });
    }
    for (let i = 0; i < 2; ++i) {
      spawn(coordinator, 'consumes', { queue: queue.handle, results: results.handle });
    }
    const consumed = coordinator.join().then(() => results.close());
    const seen = [];
    const collected = (async () => {
      for await (const item of results) seen.push(item);
    })();
    await producers.join();
    queue.close();
    await Promise.all([consumed, collected]);
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      Array.from({ length: 2 * each }, (_, i) => i),
    );
  },

  /** Workers that wait, dequeue or spawn are terminated; the joins of their coordinators end. */
  async terminates() {
    const coordinator = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1, coordinator });
    const roles = ['waits', 'waitsAndDequeues', 'spawnsForEver'];
    const workers = roles.map((role) => spawn(coordinator, role, { queue: queue.handle }));
    const joined = errorOf(coordinator.join());
    await Promise.all(workers.map((worker) => once(worker, 'online')));
    if (draw(2, 2) === 0) coordinator.requestStop();
    await Promise.all(workers.map((worker) => worker.terminate()));
    await joined;
    assert.equal(coordinator.shouldStop(), true);
    // An item that nobody had taken when the consumer ended is still there.
    assert.equal(queue.size, 0);
  },

  /** A plain Worker that nobody registered asks for its coordinator while others are spawned. */
  async asks() {
    const coordinator = new Coordinator();
    const plain = new Worker(here, { workerData: { role: 'endsAtOnce' } });
    spawn(coordinator, 'endsAtOnce');
    await Promise.all([once(plain, 'exit'), coordinator.join()]);
  },
};

if (isMainThread) {
  const wanted = process.argv.slice(2);
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const late = setTimeout(() => {
      console.error(`${name}: has not ended after 30 s`);
      process.exit(1);
    }, 30_000);
    try {
      await scenario();
    } catch (error) {
      console.error(`${name}: ${error.stack}`);
      process.exit(1);
    } finally {
      clearTimeout(late);
    }
  }
} else {
  await ROLES[workerData.role](workerData);
}
