// Every item arrives exactly once, and the items of each producer in their order: a million items,
// sent and received by native threads and workers, with stops, closes, aborts, timeouts and
// terminated consumers. To repeat a run: ALLSTOP_TEST_SEED=SEED npx vitest run
// test/lib/queue/queue-accounting.test.ts

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { turn } from '../../support/gate.ts';
import { Accounts } from '../../support/queue-accounts.ts';
import { seed } from '../../support/seed.ts';
import { addon } from '../../support/test-addon.ts';

let state = seed >>> 0;
/** A pseudo-random integer from 0 to below `limit`. */
function below(limit: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

const TERMINATIONS = Number(process.env['ALLSTOP_TEST_TERMINATIONS'] ?? 40);

type Codec = 'structured' | 'bytes';
type Ended = { sent: number; received: number; outOfOrder: number; end: string };

const url = new URL('../../fixtures/accounts-worker.mjs', import.meta.url);

class Party {
  readonly worker: Worker;
  readonly ended: Promise<Ended>;

  constructor(queue: BoundedQueue<any>, data: object) {
    const workerData = { handle: queue.handle, seed: below(2 ** 31), ...data };
    this.worker = new Worker(url, { workerData });
    this.ended = new Promise((resolve, reject) => {
      this.worker.once('error', reject);
      this.worker.on('message', (message: Ended | 'begun') => {
        if (message !== 'begun') resolve(message);
      });
    });
    this.ended.catch(() => {}); // not every test awaits it: avoids an unhandled rejection
  }
}

let made = 0;

function setUp(codec: Codec, producers: number, perProducer: number, coordinator?: Coordinator) {
  const queue = new BoundedQueue<any>({ capacity: 1 + below(2000), codec, coordinator });
  const accounts = new Accounts(producers, perProducer);
  const { seen } = accounts;
  const common = { codec, seen, perProducer, count: perProducer };
  return {
    queue,
    accounts,
    producer: (producer: number, how: string) =>
      new Party(queue, { role: 'producer', producer, how, ...common }),
    consumer: (how: string, more?: object) =>
      new Party(queue, { role: 'consumer', how, ...common, ...more }),
    nativeProducer: (producer: number): string => {
      const name = `accounts-${++made}`;
      addon.queueProduce(queue, producer, perProducer, name);
      return name;
    },
    nativeConsumer: (): string => {
      const name = `accounts-${++made}`;
      addon.queueConsume(queue, seen, perProducer, name);
      return name;
    },
  };
}

function numbers(text: string | undefined): [number, number] {
  return (text ?? '').split('|').map(Number) as [number, number];
}

/** Counts the items that are left in a closed or stopped queue. */
async function drain(queue: BoundedQueue<any>, accounts: Accounts): Promise<void> {
  for await (const item of queue) {
    accounts.count(item instanceof Uint8Array ? (new Uint32Array(item.buffer) as any) : item);
  }
}

describe(`with the seed ${seed}`, () => {
  const ofBytes = 'native threads and workers, of bytes, %i of each producer';
  it.each([20_000])(ofBytes, countBytes);
  it.each([100_000])(ofBytes, { tags: 'long' }, countBytes);
  async function countBytes(count: number): Promise<void> {
    const { queue, accounts, ...start } = setUp('bytes', 5, count);
    const consumers = ['sync', 'many', 'async'].map((how) => start.consumer(how));
    const native = [start.nativeConsumer(), start.nativeConsumer()];
    const nativeProducers = [0, 1, 2].map((producer) => start.nativeProducer(producer));
    const producers = [start.producer(3, 'sync'), start.producer(4, 'many at once')];
    for (const { ended } of producers) expect((await ended).sent).toBe(accounts.perProducer);
    for (const name of nativeProducers) expect(addon.result(name)).toBe(`${count}|0`);
    queue.close();
    for (const { ended } of consumers) {
      expect(await ended).toMatchObject({ outOfOrder: 0, end: 'OutOfRangeError' });
    }
    for (const name of native) expect(addon.result(name)).toBe('11|0');
    expect(accounts.wrong(Array(5).fill(count))).toEqual([]);
  }

  it('workers, of values', { tags: 'long' }, async () => {
    const { queue, accounts, ...start } = setUp('structured', 4, 50_000);
    const consumers = ['sync', 'many', 'iterator', 'several'].map((how) => start.consumer(how));
    const producers = ['sync', 'async', 'try', 'many at once'].map((how, i) =>
      start.producer(i, how),
    );
    for (const { ended } of producers) expect((await ended).sent).toBe(accounts.perProducer);
    queue.close();
    for (const { ended } of consumers) expect(await ended).toMatchObject({ outOfOrder: 0 });
    expect(accounts.wrong(Array(4).fill(50_000))).toEqual([]);
  });

  const inTheMiddleOf = '%s in the middle, %i times';
  const endings = ['a stop', 'close', 'close that cancels'];
  it.each(endings.map((what) => [what, 1] as const))(inTheMiddleOf, endInTheMiddle);
  it.each(endings.map((what) => [what, 3] as const))(
    inTheMiddleOf,
    { tags: 'long' },
    endInTheMiddle,
  );
  async function endInTheMiddle(what: string, rounds: number): Promise<void> {
    for (let round = 0; round < rounds; ++round) {
      const coord = new Coordinator();
      const { queue, accounts, ...start } = setUp('bytes', 4, 100_000, coord);
      const consumers = [start.consumer('sync'), start.consumer('async')];
      const native = start.nativeConsumer();
      const nativeProducers = [start.nativeProducer(0), start.nativeProducer(1)];
      const producers = [start.producer(2, 'sync'), start.producer(3, 'many at once')];
      const enough = 20_000 + below(20_000);
      let position = 0; // in the items of producer 0, which arrive in order
      while (position < enough) {
        while (position < enough && Atomics.load(accounts.seen, position) > 0) ++position;
        await turn();
      }
      if (what === 'a stop') coord.requestStop();
      else queue.close({ cancelPendingEnqueues: what === 'close that cancels' });
      const sent = nativeProducers.map((name) => numbers(addon.result(name))[0]);
      for (const { ended } of producers) {
        const { sent: own, outOfOrder } = await ended;
        expect(outOfOrder).toBe(0);
        sent.push(own);
      }
      for (const { ended } of consumers) expect(await ended).toMatchObject({ outOfOrder: 0 });
      expect(numbers(addon.result(native))[1]).toBe(0);
      await drain(queue, accounts);
      expect(accounts.wrong(sent)).toEqual([]);
    }
  }

  // The native queue keeps an item until a call returns it. dequeueSync loses no item. A consumer
  // that awaits may be terminated after its promise has resolved and before it goes on, and then
  // loses one item at most. (dequeueMany is left out: its consumer may have counted only a part of
  // the items.)
  const terminations = 'consumers in %s calls are terminated, %i of them';
  it.each([
    ['sync', 6],
    ['async', 6],
  ])(terminations, terminate);
  it.each([
    ['sync', TERMINATIONS],
    ['async', TERMINATIONS],
  ])(terminations, { tags: 'long' }, terminate);
  async function terminate(how: string, count: number): Promise<void> {
    const { queue, accounts, ...start } = setUp('structured', 2, 1_000_000);
    const producers = [start.producer(0, 'sync'), start.producer(1, 'many at once')];
    let terminated = 0;
    while (terminated < count) {
      const inHands = [0, 1].map(() => new Int32Array(new SharedArrayBuffer(4)).fill(-1));
      const victims = inHands.map((inHand) => start.consumer(how, { announces: true, inHand }));
      await Promise.all(victims.map(({ worker }) => once(worker, 'message')));
      for (let turns = below(20); turns > 0; --turns) await turn();
      await Promise.all(victims.map(({ worker }) => worker.terminate()));
      terminated += victims.length;
      // The consumer had received this item, and was terminated before it could count it.
      for (const [item] of inHands)
        if (accounts.seen[item as number] === 0) accounts.seen[item as number] = 1;
    }
    queue.close({ cancelPendingEnqueues: true });
    const sent: number[] = [];
    for (const { ended } of producers) sent.push((await ended).sent);
    await drain(queue, accounts);
    const wrong = accounts.wrong(sent);
    console.log(`${terminated} terminated in ${how} calls: ${wrong.join(', ') || 'no item lost'}`);
    expect(wrong.filter((each) => !each.endsWith(' 0 times'))).toEqual([]);
    expect(wrong.length).toBeLessThanOrEqual(how === 'sync' ? 0 : terminated);
  }
});
