// One queue, used by this thread, by workers and by native threads.

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { BoundedQueue, Coordinator } from 'allstop';
import { afterEach, describe, expect, it } from 'vitest';
import { turn } from '../../support/gate.ts';
import { hostile, oddValues, revoked } from '../../support/odd-values.ts';
import { Accounts, toBytes } from '../../support/queue-accounts.ts';
import { QueueWorker } from '../../support/queue-worker.ts';
import { addon } from '../../support/test-addon.ts';

const OK = 0;
const CANCELLED = 1;
const FAILED_PRECONDITION = 9;
const OUT_OF_RANGE = 11;
const INVALID_HANDLE = 100;

type Bytes = BoundedQueue<Uint8Array>;
type Kind = 'this thread' | 'a worker' | 'a native thread';

const COUNT = 3_000;

let workers: QueueWorker<any>[] = [];
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.terminate()));
  workers = [];
});

function workerOn<T>(queue: BoundedQueue<T>): QueueWorker<T> {
  const worker = new QueueWorker(queue);
  workers.push(worker);
  return worker;
}

let made = 0;

/**
 * Resolves to the result of a native thread. A worker waits for it, so this thread does not block.
 */
function resultOf(queue: Bytes, name: string): Promise<string | undefined> {
  return workerOn(queue).run(({ addon: own }, its) => own.result(its), name);
}

/** Enqueues the numbers from 0 to below COUNT. */
async function produce(kind: Kind, queue: Bytes): Promise<void> {
  if (kind === 'this thread') {
    for (let i = 0; i < COUNT; ++i) await queue.enqueue(toBytes(0, i));
  } else if (kind === 'a worker') {
    await workerOn(queue).run(({ queue: own }, count) => {
      for (let i = 0; i < count; ++i) {
        own.enqueueSync(new Uint8Array(Uint32Array.of(0, i).buffer));
      }
    }, COUNT);
  } else {
    const name = `producer-${++made}`;
    addon.queueProduce(queue, 0, COUNT, name);
    expect(await resultOf(queue, name)).toBe(`${COUNT}|${OK}`);
  }
}

/** Counts items until the queue ends. Resolves to the number of items out of order. */
async function consume(kind: Kind, queue: Bytes, accounts: Accounts): Promise<number> {
  if (kind === 'this thread') {
    let next = 0;
    let outOfOrder = 0;
    for await (const item of queue) {
      const [producer, sequence] = new Uint32Array(item.buffer) as unknown as [number, number];
      accounts.count([producer, sequence]);
      if (sequence < next) ++outOfOrder;
      next = sequence + 1;
    }
    return outOfOrder;
  }
  if (kind === 'a worker') {
    return workerOn(queue).run(({ queue: own, OutOfRangeError }, seen) => {
      let next = 0;
      let outOfOrder = 0;
      try {
        for (;;) {
          const [, sequence] = new Uint32Array(own.dequeueSync().buffer) as any;
          Atomics.add(seen, sequence, 1);
          if (sequence < next) ++outOfOrder;
          next = sequence + 1;
        }
      } catch (error) {
        if (!(error instanceof OutOfRangeError)) throw error;
      }
      return outOfOrder;
    }, accounts.seen);
  }
  const name = `consumer-${++made}`;
  addon.queueConsume(queue, accounts.seen, accounts.perProducer, name);
  const [status, outOfOrder] = ((await resultOf(queue, name)) ?? '').split('|').map(Number);
  expect(status).toBe(OUT_OF_RANGE);
  return outOfOrder as number;
}

const kinds: Kind[] = ['this thread', 'a worker', 'a native thread'];

describe.each(kinds)('%s produces', (producer) => {
  it.each(
    kinds.flatMap((consumer) =>
      [1, 7, 10_000].map((capacity): [Kind, number] => [consumer, capacity]),
    ),
  )('and %s consumes, from a queue of %i', async (consumer, capacity) => {
    const queue: Bytes = new BoundedQueue({ capacity, codec: 'bytes' });
    const accounts = new Accounts(1, COUNT);
    const consumed = consume(consumer, queue, accounts);
    await produce(producer, queue);
    queue.close();
    expect(await consumed).toBe(0);
    expect(accounts.wrong([COUNT])).toEqual([]);
  });
});

describe('values', () => {
  it('go from this thread to a worker and back, as clones', async () => {
    const there = new BoundedQueue({ capacity: 4 });
    const back = new BoundedQueue({ capacity: 4 });
    const echo = workerOn(there).run(async ({ queue, BoundedQueue: Queue }, handle) => {
      const to = Queue.attach(handle);
      for await (const item of queue) await to.enqueue(item);
      to.close();
    }, back.handle);
    const shared = { shared: true };
    const items = [1, 'text', [shared, shared], new Map([[1, new Date(5)]]), -0, undefined];
    const sent = (async () => {
      for (const item of items) await there.enqueue(item);
      there.close();
    })();
    const got: unknown[] = [];
    for await (const item of back) got.push(item);
    await Promise.all([sent, echo]);
    expect(got).toStrictEqual(items);
    expect((got[2] as unknown[])[0]).toBe((got[2] as unknown[])[1]);
  });

  it('are refused by QueueFrom of C++', () => {
    const path = new URL('../../addons/test-addon/build/Release/thrower.node', import.meta.url);
    const thrower = createRequire(import.meta.url)(fileURLToPath(path));
    const bytes = new BoundedQueue<Uint8Array>({ capacity: 1, codec: 'bytes' });
    bytes.enqueueSync(new Uint8Array(1));
    expect(thrower.queueFrom(bytes)).toBe(1);
    expect(() => thrower.queueFrom(new BoundedQueue({ capacity: 1 }))).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
        message: expect.stringContaining("the codec 'bytes'"),
      }),
    );
  });

  it('are not seen by native threads', () => {
    const queue = new BoundedQueue<never>({ capacity: 4 });
    queue.enqueueSync('a value' as never);
    addon.queueBlock(queue, 'dequeue', 'values-out');
    addon.queueBlock(queue, 'enqueue', 'values-in');
    expect(addon.result('values-out')).toBe(`${FAILED_PRECONDITION}|`);
    expect(addon.result('values-in')).toBe(`${FAILED_PRECONDITION}|`);
    expect(queue.tryDequeue()).toBe('a value');
    expect(queue.tryDequeue()).toBeUndefined();
  });
});

describe('an item that a thread cannot read', () => {
  it('goes back, and what came before it is not lost', async () => {
    const queue = new BoundedQueue({ capacity: 2_000 });
    const before = Array.from({ length: 1_030 }, (_, i) => i);
    for (const item of before) queue.enqueueSync(item);
    // A worker has a larger stack than this thread: this thread cannot deserialize the deep item.
    await workerOn(queue).run(({ queue: own }) => {
      let deep: unknown = 'deep';
      for (let i = 0; i < 10_000; ++i) deep = [deep];
      own.enqueueSync(deep);
      own.enqueueSync('after');
    }, undefined);
    const got: unknown[] = [];
    while (queue.size > 2) got.push(...(await queue.dequeueMany(2_000)));
    expect(got).toEqual(before);
    await expect(queue.dequeueMany(2_000)).rejects.toThrow(RangeError);
    expect(() => queue.tryDequeue()).toThrow(RangeError);
    expect(queue.size).toBe(2);
    await workerOn(queue).run(({ queue: own }) => void own.dequeueSync(), undefined);
    expect(await queue.dequeueMany(9)).toEqual(['after']);
  });
});

describe('a handle', () => {
  it('leads to the same object each time, in each thread', async () => {
    const queue = new BoundedQueue<string>({ capacity: 4, name: 'shared' });
    const worker = workerOn(queue);
    expect(
      await worker.run(({ queue: own, BoundedQueue: Queue }, handle) => {
        own.enqueueSync('from there');
        return [Queue.attach(handle) === own, own.name, own.capacity, own.size, own.closed];
      }, queue.handle),
    ).toEqual([true, 'shared', 4, 1, false]);
    expect(queue.dequeueSync()).toBe('from there');
    await worker.run(({ queue: own }) => own.close(), undefined);
    expect(queue.closed).toBe(true);
  });
});

describe('items without a copy', () => {
  it('come out whole, and their owner gets them back', async () => {
    const queue: Bytes = new BoundedQueue({ capacity: 2, codec: 'bytes' });
    addon.queueFill(queue, 50, 100_000);
    let count = 0;
    for await (const item of queue) {
      expect([item.length, item[0], item[99_999]]).toEqual([100_000, count, count]);
      ++count;
    }
    expect(count).toBe(50);
  });
});

describe('allstop_queue_from_napi', () => {
  it('takes a queue, and one of a derived class', () => {
    class Derived extends BoundedQueue {}
    const queue = new BoundedQueue({ capacity: 1 });
    for (let i = 0; i < 1000; ++i) expect(addon.queueStatus(queue)).toBe(OK);
    expect(addon.queueStatus(new Derived({ capacity: 1 }))).toBe(OK);
    expect(addon.queueStatus(Object.setPrototypeOf(queue, null))).toBe(OK);
  });

  it.each([
    ...oddValues().map(({ label, value }): [string, unknown] => [label, value]),
    ['a coordinator', new Coordinator()],
    ['the handle', new BoundedQueue({ capacity: 1 }).handle],
    ['what only inherits from a queue', Object.create(new BoundedQueue({ capacity: 1 }))],
    ['a proxy of a queue', new Proxy(new BoundedQueue({ capacity: 1 }), {})],
    ['a revoked proxy of a queue', revoked(new BoundedQueue({ capacity: 1 }))],
    ['the class', BoundedQueue],
    ['an object of another addon', addon.decoy()],
    ['a bare pointer', addon.external()],
    ['a hostile proxy', hostile()],
  ] as [string, unknown][])('refuses %s', (_, value) => {
    expect(addon.queueStatus(value)).toBe(INVALID_HANDLE);
  });
});

describe('a stop', () => {
  it('releases 16 who wait at a full queue and 16 at an empty one, and join settles', async () => {
    const coord = new Coordinator();
    const full: Bytes = new BoundedQueue({ capacity: 1, codec: 'bytes', coordinator: coord });
    const empty: Bytes = new BoundedQueue({ capacity: 1, codec: 'bytes', coordinator: coord });
    full.enqueueSync(new Uint8Array());
    const names: string[] = [];
    for (let i = 0; i < 6; ++i) {
      names.push(`full-${i}`, `empty-${i}`);
      addon.queueBlock(full, 'enqueue', `full-${i}`);
      addon.queueBlock(empty, 'dequeue', `empty-${i}`);
    }
    const blocked: Promise<unknown>[] = [];
    for (let i = 0; i < 4; ++i) {
      const [one, other] = [workerOn(full), workerOn(empty)];
      const begun = [one.said(), other.said()];
      blocked.push(
        one.run(({ queue, say }) => {
          say('blocking');
          queue.enqueueSync(new Uint8Array());
        }, undefined),
        other.run(({ queue, say }) => {
          say('blocking');
          queue.dequeueSync();
        }, undefined),
      );
      await Promise.all(begun);
    }
    for (let i = 0; i < 6; ++i) blocked.push(full.enqueue(new Uint8Array()), empty.dequeue());
    for (const each of blocked) coord.registerThread(each);
    const outcomes = Promise.allSettled(blocked);
    coord.requestStop();
    for (const each of await outcomes) {
      expect(each).toMatchObject({ reason: { name: 'CancelledError' } });
    }
    for (const name of names) expect(addon.result(name)).toBe(`${CANCELLED}|`);
    await coord.join();
    expect([full.size, empty.size]).toEqual([1, 0]);
  });

  it('that a worker requests ends the waits of this thread, and the other way round', async () => {
    const coord = new Coordinator();
    const queue: Bytes = new BoundedQueue({ capacity: 1, codec: 'bytes', coordinator: coord });
    const worker = workerOn(queue);
    const CANCELLATION = { name: 'CancelledError' };
    const ended = expect(queue.dequeue()).rejects.toMatchObject(CANCELLATION);
    await worker.run(
      ({ Coordinator: Coord }, handle) => Coord.attach(handle).requestStop(),
      coord.handle,
    );
    await ended;
    coord.clearStop();
    const begun = worker.said();
    const there = worker.run(async ({ queue: own, say, turns }) => {
      const pending = own.dequeue();
      await turns();
      say('waiting');
      await pending;
    }, undefined);
    const endedThere = expect(there).rejects.toMatchObject(CANCELLATION);
    await begun;
    coord.requestStop();
    coord.clearStop();
    await endedThere;
  });
});

describe('close', () => {
  it('lets in whoever waits, of all threads, and ends for all', async () => {
    const queue: Bytes = new BoundedQueue({ capacity: 1, codec: 'bytes' });
    queue.enqueueSync(Buffer.from('first'));
    const worker = workerOn(queue);
    const begun = worker.said();
    const there = worker.run(async ({ queue: own, say, turns }) => {
      const pending = own.enqueue(new Uint8Array(2));
      await turns();
      say('waiting');
      await pending;
    }, undefined);
    await begun;
    const here = queue.enqueue(new Uint8Array(1));
    queue.close();
    const lengths: number[] = [];
    for await (const item of queue) lengths.push(item.length);
    await Promise.all([here, there]);
    expect(new Set(lengths)).toEqual(new Set([1, 2, 5]));
    addon.queueBlock(queue, 'enqueue', 'late');
    addon.queueBlock(queue, 'dequeue', 'late-out');
    expect(addon.result('late')).toBe(`${CANCELLED}|`);
    expect(addon.result('late-out')).toBe(`${OUT_OF_RANGE}|`);
  });
});

describe('a thread that waits and is busy with something else', () => {
  it.each(['dequeue', 'enqueue'] as const)('holds up nobody else: %s', async (operation) => {
    const queue = new BoundedQueue<string>({ capacity: 1 });
    if (operation === 'enqueue') queue.enqueueSync('in the way');
    const goOn = new Int32Array(new SharedArrayBuffer(4));
    const worker = workerOn(queue);
    const begun = worker.said();
    const there = worker.run(
      async ({ queue: own, say, turns }, { what, until }) => {
        const pending = what === 'dequeue' ? own.dequeue() : own.enqueue('its own');
        await turns();
        say('waiting');
        Atomics.wait(until, 0, 0);
        return pending;
      },
      { what: operation, until: goOn },
    );
    await begun;
    const here = operation === 'dequeue' ? queue.dequeue() : queue.enqueue('mine');
    await turn();
    await turn(); // now the native queue knows of both waits
    if (operation === 'dequeue') {
      queue.enqueueSync('an item');
      expect(await here).toBe('an item');
      queue.enqueueSync('another one');
    } else {
      expect(queue.tryDequeue()).toBe('in the way');
      await here;
      expect(await queue.dequeue()).toBe('mine');
    }
    Atomics.store(goOn, 0, 1);
    Atomics.notify(goOn, 0);
    expect(await there).toBe(operation === 'dequeue' ? 'another one' : undefined);
  });
});
