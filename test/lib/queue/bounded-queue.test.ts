// What BoundedQueue promises, point by point, on one thread.

import { getEventListeners } from 'node:events';
import { BoundedQueue, CancelledError, Coordinator, LooperThread, OutOfRangeError } from 'allstop';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { turn } from '../../support/gate.ts';
import { runScript, saidOf } from '../../support/run-script.ts';

const CLOSED = { name: 'OutOfRangeError', code: 'ERR_ALLSTOP_OUT_OF_RANGE' };
const CANCELLED = { name: 'CancelledError', code: 'ERR_ALLSTOP_CANCELLED' };
const TIMED_OUT = { name: 'DeadlineExceededError', code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' };

function numbers(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

/** A full queue with the numbers from 0. */
function full(capacity: number, coordinator?: Coordinator): BoundedQueue<number> {
  const queue = new BoundedQueue<number>({ capacity, coordinator });
  for (const number of numbers(capacity)) queue.enqueueSync(number);
  return queue;
}

async function rest<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

/** The error that a call threw; undefined if it threw none. */
function thrown(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Resolves when pending waits have been registered with the native queue, two turns later. */
async function waiting(): Promise<void> {
  await turn();
  await turn();
}

/** From now on time passes only by `vi.advanceTimersByTime`. */
const useFakeTimers = (): unknown =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
afterEach(() => void vi.useRealTimers());

describe('items', () => {
  it('come out in the order in which they went in, whatever the calls', async () => {
    const queue = new BoundedQueue<number>({ capacity: 8 });
    await queue.enqueue(0);
    queue.enqueueSync(1);
    expect(queue.tryEnqueue(2)).toBe(true);
    await Promise.all([queue.enqueue(3), queue.enqueue(4), queue.enqueue(5)]);
    expect(await queue.dequeue()).toBe(0);
    expect(queue.dequeueSync()).toBe(1);
    expect(queue.tryDequeue()).toBe(2);
    expect(await queue.dequeueMany(2)).toEqual([3, 4]);
    expect(await queue[Symbol.asyncIterator]().next()).toEqual({ done: false, value: 5 });
  });

  it('go to those who wait in the order of their calls', async () => {
    const queue = new BoundedQueue<number>({ capacity: 10 });
    const waits = numbers(5).map(() => queue.dequeue());
    await waiting();
    for (const number of numbers(5)) queue.enqueueSync(number);
    expect(await Promise.all(waits)).toEqual(numbers(5));
  });

  it('are as many as the capacity at most, and the rest waits', async () => {
    const queue = full(3);
    expect(queue).toMatchObject({ size: 3, capacity: 3 });
    expect(queue.tryEnqueue(3)).toBe(false);
    let done = false;
    const wait = queue.enqueue(3).then(() => {
      done = true;
    });
    await waiting();
    expect({ done, size: queue.size }).toEqual({ done: false, size: 3 });
    expect(queue.tryDequeue()).toBe(0);
    await wait;
    expect(queue.size).toBe(3);
    expect(await queue.dequeueMany(9)).toEqual([1, 2, 3]);
  });

  it('of many waiting enqueues keep their order, and so do those that come later', async () => {
    const queue = full(1);
    const waits = numbers(50, 1).map((number) => queue.enqueue(number));
    await waiting();
    expect(queue.tryDequeue()).toBe(0); // now there is room, but the waiting enqueues come first
    expect(queue.tryEnqueue(51)).toBe(false);
    waits.push(queue.enqueue(51));
    const items: number[] = [];
    while (items.length < 51) items.push(await queue.dequeue());
    await Promise.all(waits);
    expect(items).toEqual(numbers(51, 1));
  });

  it('of enqueueSync come behind those that this thread has waiting', async () => {
    const queue = full(3);
    const waits = [queue.enqueue(3), queue.enqueue(4)];
    for (const number of numbers(3)) expect(queue.tryDequeue()).toBe(number);
    queue.enqueueSync(5);
    await Promise.all(waits);
    expect(await queue.dequeueMany(9)).toEqual([3, 4, 5]);
  });

  it('that this thread has waiting go in while it blocks in dequeueSync', async () => {
    const queue = full(1);
    const wait = queue.enqueue(1);
    expect(queue.dequeueSync()).toBe(0);
    // The pending enqueue completed meanwhile: only this thread can let it try.
    expect(queue.dequeueSync(60_000)).toBe(1);
    await wait;
  });
});

describe('dequeueMany', () => {
  it('takes what is there, 1 to max', async () => {
    const queue = full(5);
    expect(await queue.dequeueMany(1)).toEqual([0]);
    expect(await queue.dequeueMany(2)).toEqual([1, 2]);
    expect(await queue.dequeueMany(Number.MAX_SAFE_INTEGER)).toEqual([3, 4]);
  });

  it('waits for one, not for max', async () => {
    const queue = new BoundedQueue<string>({ capacity: 5 });
    const wait = queue.dequeueMany(5);
    await waiting();
    queue.enqueueSync('alone');
    expect(await wait).toEqual(['alone']);
  });

  it.each([1023, 1024, 1025, 2048, 2049, 5000])('takes %i items at once', async (count) => {
    const queue = full(count);
    expect(await queue.dequeueMany(count)).toEqual(numbers(count));
    for (const number of numbers(count)) queue.enqueueSync(number);
    expect(await queue.dequeueMany(count - 1)).toEqual(numbers(count - 1));
    expect(queue.tryDequeue()).toBe(count - 1);
  });

  it('makes room for all whose items it took', async () => {
    const queue = full(4);
    const waits = numbers(4, 4).map((number) => queue.enqueue(number));
    await waiting();
    expect(await queue.dequeueMany(4)).toEqual(numbers(4));
    await Promise.all(waits);
    expect(await queue.dequeueMany(4)).toEqual(numbers(4, 4));
  });
});

describe('dequeueMany with min', () => {
  it('waits for that many, takes them and the others up to max, and reserves none', async () => {
    const queue = new BoundedQueue<number>({ capacity: 8 });
    for (const number of numbers(2)) queue.enqueueSync(number);
    let batch: number[] | undefined;
    const wait = queue.dequeueMany(4, { min: 3 }).then((items) => {
      batch = items;
    });
    await waiting();
    expect({ batch, size: queue.size }).toEqual({ batch: undefined, size: 2 });
    queue.enqueueSync(2);
    await wait;
    expect(batch).toEqual([0, 1, 2]);
    for (const number of numbers(6)) queue.enqueueSync(number);
    expect(await queue.dequeueMany(4, { min: 2 })).toEqual(numbers(4));
  });

  it('is a batch of a fixed size with min = max, whoever enqueues', async () => {
    const queue = new BoundedQueue<number>({ capacity: 4 });
    const enqueues = numbers(12).map((number) => queue.enqueue(number));
    for (const first of [0, 4, 8]) {
      expect(await queue.dequeueMany(4, { min: 4 })).toEqual(numbers(4, first));
    }
    await Promise.all(enqueues);
  });

  it('waits for as many as the capacity, however many those are', async () => {
    const queue = new BoundedQueue<number>({ capacity: 70_000 });
    const wait = queue.dequeueMany(Number.MAX_SAFE_INTEGER, { min: 70_000 });
    for (const number of numbers(70_000)) queue.enqueueSync(number);
    expect(await wait).toHaveLength(70_000);
    const endless = new BoundedQueue({ capacity: Number.MAX_SAFE_INTEGER });
    const max = Number.MAX_SAFE_INTEGER;
    const never = endless.dequeueMany(max, { min: max });
    endless.enqueueSync('alone');
    await waiting();
    endless.close();
    expect(await never).toEqual(['alone']);
  });

  it('keeps no item from the waits behind it that need fewer', async () => {
    const queue = new BoundedQueue<number>({ capacity: 8 });
    const patient = queue.dequeueMany(8, { min: 4 });
    const two = queue.dequeueMany(8, { min: 2 });
    const one = queue.dequeue();
    await waiting();
    queue.enqueueSync(0);
    expect(await one).toBe(0);
    queue.enqueueSync(1);
    await waiting();
    queue.enqueueSync(2);
    expect(await two).toEqual([1, 2]);
    const late = queue.dequeue();
    queue.enqueueSync(3);
    expect(await late).toBe(3);
    for (const number of numbers(4, 4)) queue.enqueueSync(number);
    expect(await patient).toEqual(numbers(4, 4));
  });

  it('takes what is there when the time is over', async () => {
    const queue = full(2);
    expect(await queue.dequeueMany(2, { min: 2, timeoutMs: 0 })).toEqual([0, 1]);
    queue.enqueueSync(2);
    expect(await queue.dequeueMany(2, { min: 2, timeoutMs: 0 })).toEqual([2]);
    queue.enqueueSync(3);
    const start = performance.now();
    expect(await queue.dequeueMany(2, { min: 2, timeoutMs: 20 })).toEqual([3]);
    expect(performance.now() - start).toBeGreaterThanOrEqual(20);
    for (const timeoutMs of [0, 1]) {
      await expect(queue.dequeueMany(2, { min: 2, timeoutMs })).rejects.toMatchObject({
        ...TIMED_OUT,
        message: expect.stringContaining(`'${queue.name}'`),
      });
    }
  });

  it('takes what is there when its time is over, although another waits for more', async () => {
    const queue = new BoundedQueue<number>({ capacity: 8 });
    const patient = queue.dequeueMany(8, { min: 8 });
    const hasty = queue.dequeueMany(8, { min: 6, timeoutMs: 5 });
    for (const number of numbers(3)) queue.enqueueSync(number);
    expect(await hasty).toEqual(numbers(3));
    queue.enqueueSync(3);
    queue.close();
    expect(await patient).toEqual([3]);
  });

  it('takes nothing when its signal aborts', async () => {
    const queue = full(3);
    const controller = new AbortController();
    const wait = queue.dequeueMany(3, { min: 3, signal: controller.signal });
    expect(await wait).toEqual(numbers(3));
    queue.enqueueSync(0);
    const aborted = queue.dequeueMany(3, { min: 3, signal: controller.signal });
    await waiting();
    controller.abort('enough');
    await expect(aborted).rejects.toBe('enough');
    expect(queue.size).toBe(1);
  });

  it('takes the rest of a closed queue, once the enqueues that wait are in', async () => {
    const queue = full(2);
    const enqueues = numbers(3, 2).map((number) => queue.enqueue(number));
    queue.close();
    const batches = [];
    for (;;) {
      const batch = await queue.dequeueMany(2, { min: 2 }).catch((error: unknown) => error);
      if (!Array.isArray(batch)) {
        expect(batch).toMatchObject(CLOSED);
        break;
      }
      batches.push(batch);
    }
    expect(batches).toEqual([[0, 1], [2, 3], [4]]);
    await Promise.all(enqueues);
  });

  it('that waits takes the rest when the queue is closed or stopped', async () => {
    for (const end of ['close', 'stop', 'stop that is cleared']) {
      const coord = new Coordinator();
      const queue = new BoundedQueue<number>({ capacity: 4, coordinator: coord });
      queue.enqueueSync(1);
      const waits = Promise.allSettled([4, 3].map((min) => queue.dequeueMany(4, { min })));
      await waiting();
      if (end === 'close') queue.close();
      else coord.requestStop();
      if (end === 'stop that is cleared') coord.clearStop();
      const reason = end === 'close' ? CLOSED : CANCELLED;
      expect(await waits, end).toMatchObject([{ value: [1] }, { reason }]);
    }
  });

  it('above max or the capacity is a RangeError', async () => {
    const queue = new BoundedQueue({ capacity: 4 });
    const outOfRange = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
    await expect(queue.dequeueMany(2, { min: 3 })).rejects.toMatchObject({
      ...outOfRange,
      message: expect.stringContaining('options.min'),
    });
    await expect(queue.dequeueMany(9, { min: 5 })).rejects.toMatchObject({
      ...outOfRange,
      message:
        'The value of "options.min" is out of range. It must be <= the capacity of the queue (4). Received 5',
    });
  });
});

describe('tryEnqueue and tryDequeue', () => {
  it('never wait', () => {
    const queue = new BoundedQueue<string>({ capacity: 1 });
    expect(queue.tryDequeue()).toBeUndefined();
    expect(queue.tryEnqueue('a')).toBe(true);
    expect(queue.tryEnqueue('b')).toBe(false);
    expect(queue.tryDequeue()).toBe('a');
    expect(queue.tryDequeue()).toBeUndefined();
  });

  it('throw what the others do when the queue is closed', () => {
    const queue = full(1);
    queue.close();
    expect(thrown(() => queue.tryEnqueue(1))).toMatchObject(CANCELLED);
    expect(queue.tryDequeue()).toBe(0);
    expect(thrown(() => queue.tryDequeue())).toMatchObject(CLOSED);
  });
});

describe('a timeout', () => {
  it('of 0 does not wait', async () => {
    const [one, none] = [full(1), new BoundedQueue({ capacity: 1 })];
    await expect(one.enqueue(1, { timeoutMs: 0 })).rejects.toMatchObject(TIMED_OUT);
    expect(thrown(() => one.enqueueSync(1, 0))).toMatchObject(TIMED_OUT);
    await expect(none.dequeue({ timeoutMs: 0 })).rejects.toMatchObject(TIMED_OUT);
    await expect(none.dequeueMany(9, { timeoutMs: 0 })).rejects.toMatchObject(TIMED_OUT);
    expect(thrown(() => none.dequeueSync(0))).toMatchObject(TIMED_OUT);
    expect(thrown(() => one.enqueueSync(1, 0))).toMatchObject({
      message: expect.stringContaining(`'${one.name}'`),
    });
    expect(thrown(() => none.dequeueSync(0))).toMatchObject({
      message: expect.stringContaining(`'${none.name}'`),
    });
    expect(await one.dequeue({ timeoutMs: 0 })).toBe(0);
    await one.enqueue(2, { timeoutMs: 0 });
    expect(one.dequeueSync(0)).toBe(2);
  });

  it('that is over rejects, never before, and nothing is lost or left behind', async () => {
    const [one, none] = [full(1), new BoundedQueue({ capacity: 1 })];
    const start = performance.now();
    await Promise.all([
      expect(one.enqueue(1, { timeoutMs: 20 })).rejects.toMatchObject(TIMED_OUT),
      expect(none.dequeue({ timeoutMs: 20 })).rejects.toMatchObject(TIMED_OUT),
      expect(none.dequeueMany(2, { timeoutMs: 20 })).rejects.toMatchObject(TIMED_OUT),
    ]);
    expect(performance.now() - start).toBeGreaterThanOrEqual(20);
    expect(one.tryDequeue()).toBe(0);
    expect(one.tryDequeue()).toBeUndefined();
    none.enqueueSync('later');
    await waiting();
    expect(none.tryDequeue()).toBe('later');
  });

  it('is needed by no wait without one: fake timers hold up none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const coord = new Coordinator();
    let runs = 0;
    LooperThread.loop(coord, null, () => ++runs === 300 && coord.requestStop());
    const filled = coord.start(async () => {
      for (const number of numbers(300)) await queue.enqueue(number);
      queue.close();
    });
    const items: number[] = [];
    for await (const item of queue) items.push(item);
    await filled;
    expect(items).toEqual(numbers(300));
    expect(await coord.waitForStop()).toBe(true);
  });

  it('that is over in a busy thread takes an item that came meanwhile, also in its turn', async () => {
    const queue = new BoundedQueue<number>({ capacity: 4 });
    useFakeTimers();
    const waits = [queue.dequeue(), queue.dequeue({ timeoutMs: 5 })];
    await waiting();
    queue.enqueueSync(1);
    queue.enqueueSync(2);
    vi.advanceTimersByTime(5); // before the thread learns of the items
    expect(await Promise.all(waits)).toEqual([1, 2]);
  });

  it('blocks no longer in the calls that block', () => {
    const [one, none] = [full(1), new BoundedQueue({ capacity: 1 })];
    for (const ms of [5, 60]) {
      const start = performance.now();
      expect(thrown(() => one.enqueueSync(1, ms))).toMatchObject(TIMED_OUT);
      expect(performance.now() - start).toBeGreaterThanOrEqual(ms);
      expect(thrown(() => none.dequeueSync(ms))).toMatchObject(TIMED_OUT);
    }
  });

  it.each([Number.POSITIVE_INFINITY, 1e300, 1e12])('of %d ms waits', async (timeoutMs) => {
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const wait = queue.dequeue({ timeoutMs });
    await waiting();
    queue.enqueueSync(1, timeoutMs);
    expect(await wait).toBe(1);
    const other = full(1);
    const enqueue = other.enqueue(1, { timeoutMs });
    await waiting();
    expect(other.dequeueSync(timeoutMs)).toBe(0);
    await enqueue;
  });

  it('does not overtake an item that is there by then', async () => {
    const queue = new BoundedQueue<number>({ capacity: 2 });
    useFakeTimers();
    const waits = [queue.dequeue({ timeoutMs: 5 }), queue.dequeue({ timeoutMs: 5 })];
    await waiting();
    queue.enqueueSync(1);
    queue.enqueueSync(2);
    vi.advanceTimersByTime(5); // before the thread learns of the items
    expect(await Promise.all(waits)).toEqual([1, 2]);
  });

  it('of one wait leaves the others theirs', async () => {
    const queue = full(1);
    const outcomes = Promise.allSettled([
      queue.enqueue(1),
      queue.enqueue(2, { timeoutMs: 5 }),
      queue.enqueue(3),
    ]);
    await expect(queue.enqueue(4, { timeoutMs: 10 })).rejects.toMatchObject(TIMED_OUT);
    queue.close();
    expect(await rest(queue)).toEqual([0, 1, 3]);
    expect((await outcomes).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });
});

describe('a signal', () => {
  it('that has aborted already rejects with its reason, and nothing is moved', async () => {
    const signal = AbortSignal.abort('the reason');
    const queue = full(2);
    queue.tryDequeue();
    await expect(queue.enqueue(2, { signal })).rejects.toBe('the reason');
    await expect(queue.dequeue({ signal })).rejects.toBe('the reason');
    await expect(queue.dequeueMany(2, { signal })).rejects.toBe('the reason');
    expect(queue.size).toBe(1);
  });

  it('that aborts while waiting rejects with its reason, and nothing is lost', async () => {
    const [one, none] = [full(1), new BoundedQueue<number>({ capacity: 2 })];
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new RangeError('enough');
    const waits = Promise.allSettled([
      one.enqueue(1, { signal }),
      none.dequeue({ signal }),
      none.dequeueMany(2, { signal, timeoutMs: 60_000 }),
    ]);
    const others = [one.enqueue(2), none.dequeue()];
    await waiting();
    controller.abort(reason);
    expect((await waits).map((each) => each.status === 'rejected' && each.reason)).toEqual([
      reason,
      reason,
      reason,
    ]);
    none.enqueueSync(7);
    expect(one.tryDequeue()).toBe(0);
    expect(await Promise.all(others)).toEqual([undefined, 7]);
    expect([one.tryDequeue(), none.tryDequeue()]).toEqual([2, undefined]);
  });

  it('has no listener of ours once the wait has ended, however it has', async () => {
    const queue = full(1);
    const { signal } = new AbortController();
    const ends = queue.enqueue(1, { signal, timeoutMs: 1 });
    const goes = queue.enqueue(2, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1); // both waits share one listener
    await expect(ends).rejects.toMatchObject(TIMED_OUT);
    queue.tryDequeue();
    await goes;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await expect(queue.enqueue(3, { signal, timeoutMs: 0 })).rejects.toMatchObject(TIMED_OUT);
    const closed = queue.enqueue(3, { signal });
    queue.close({ cancelPendingEnqueues: true });
    await expect(closed).rejects.toMatchObject(CANCELLED);
    expect(await queue.dequeue({ signal })).toBe(2);
    await expect(queue.dequeue({ signal })).rejects.toMatchObject(CLOSED);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('may have any number of waits, and nobody is warned', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const controller = new AbortController();
    const { signal } = controller;
    const waits = numbers(200).map(() => queue.dequeue({ signal }));
    const outcomes = Promise.allSettled(waits);
    await waiting();
    controller.abort();
    expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
    await waiting();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('whose listeners call in again finds the queue as it is', async () => {
    const queue = full(1);
    const controller = new AbortController();
    const { signal } = controller;
    const again: Promise<unknown>[] = [];
    signal.addEventListener('abort', () => {
      again.push(queue.enqueue(8, { signal }).catch((error: unknown) => error));
      expect(queue.tryDequeue()).toBe(0);
      again.push(queue.enqueue(9));
    });
    const waits = [queue.enqueue(1, { signal }), queue.enqueue(2)];
    await waiting();
    controller.abort(null);
    await expect(waits[0]).rejects.toBe(null);
    expect(await queue.dequeue()).toBe(2);
    expect(await queue.dequeue()).toBe(9);
    expect(await Promise.all(again)).toEqual([null, undefined]);
  });

  it('that refuses listeners fails the call, and leaves no wait behind', async () => {
    const refusing = {
      aborted: false,
      reason: undefined,
      addEventListener: () => {
        throw new RangeError('no listeners');
      },
      removeEventListener: () => {},
    } as unknown as AbortSignal;
    const queue = full(1);
    for (let i = 0; i < 2; ++i) {
      await expect(queue.enqueue(1, { signal: refusing })).rejects.toThrow('no listeners');
    }
    queue.close();
    expect(await rest(queue)).toEqual([0]); // the failed enqueues do not keep the queue open
  });
});

describe('close', () => {
  it('lets nobody begin to enqueue, and everybody take what is there', async () => {
    const queue = full(3);
    expect(queue.closed).toBe(false);
    queue.close();
    queue.close();
    expect(queue.closed).toBe(true);
    await expect(queue.enqueue(3)).rejects.toMatchObject(CANCELLED);
    expect(thrown(() => queue.enqueueSync(3))).toMatchObject(CANCELLED);
    expect(queue.dequeueSync()).toBe(0);
    expect(await queue.dequeueMany(9)).toEqual([1, 2]);
    await expect(queue.dequeue()).rejects.toMatchObject(CLOSED);
    await expect(queue.dequeueMany(9)).rejects.toMatchObject(CLOSED);
    expect(thrown(() => queue.dequeueSync())).toMatchObject(CLOSED);
    await expect(queue.enqueue(3)).rejects.toBeInstanceOf(CancelledError);
  });

  it('tells those who wait for an item', async () => {
    const queue = new BoundedQueue({ capacity: 1 });
    const waits = Promise.allSettled([queue.dequeue(), queue.dequeueMany(3), queue.dequeue()]);
    await waiting();
    queue.close();
    for (const each of await waits) expect(each).toMatchObject({ reason: CLOSED });
  });

  it('lets in who is waiting to enqueue, in their order', async () => {
    const queue = full(2);
    const waits = Promise.all(numbers(30, 2).map((number) => queue.enqueue(number)));
    await waiting();
    queue.close();
    await expect(queue.enqueue(99)).rejects.toMatchObject(CANCELLED);
    expect(await rest(queue)).toEqual(numbers(32));
    await waits;
  });

  it('refuses at once also where others are waiting to enqueue', async () => {
    const queue = full(1);
    const wait = queue.enqueue(1);
    queue.close();
    // Fails at once: waiting would never end.
    expect(thrown(() => queue.enqueueSync(2))).toMatchObject(CANCELLED);
    expect(thrown(() => queue.tryEnqueue(2))).toMatchObject(CANCELLED);
    await expect(queue.enqueue(2, { timeoutMs: 0 })).rejects.toMatchObject(CANCELLED);
    expect(await rest(queue)).toEqual([0, 1]);
    await wait;
  });

  it('ends for consumers when the last waiting enqueue is in, or has given up', async () => {
    const controller = new AbortController();
    const queue = full(1);
    const aborted = queue.enqueue(1, { signal: controller.signal });
    const wait = queue.enqueue(2);
    queue.close();
    expect(await queue.dequeueMany(1)).toEqual([0]);
    controller.abort('gave up');
    await expect(aborted).rejects.toBe('gave up');
    await wait;
    expect(await rest(queue)).toEqual([2]);
  });

  it('with cancelPendingEnqueues cancels who is waiting, and keeps what is there', async () => {
    const queue = full(2);
    const waits = Promise.allSettled(numbers(5).map((number) => queue.enqueue(number)));
    await waiting();
    queue.close({ cancelPendingEnqueues: true });
    for (const each of await waits) expect(each).toMatchObject({ reason: CANCELLED });
    expect(await rest(queue)).toEqual([0, 1]);
  });

  it('with cancelPendingEnqueues is the end at once, not when those have heard of it', () => {
    const queue = full(1);
    const wait = queue.enqueue(1).catch((error: unknown) => error);
    queue.close({ cancelPendingEnqueues: true });
    expect(queue.dequeueSync()).toBe(0);
    expect(thrown(() => queue.dequeueSync())).toMatchObject(CLOSED);
    expect(thrown(() => queue.tryDequeue())).toMatchObject(CLOSED);
    return expect(wait).resolves.toMatchObject(CANCELLED);
  });

  it('may be followed by one that cancels', async () => {
    const queue = full(1);
    const wait = queue.enqueue(1);
    queue.close();
    queue.close({ cancelPendingEnqueues: true });
    queue.close();
    await expect(wait).rejects.toMatchObject(CANCELLED);
    expect(await rest(queue)).toEqual([0]);
  });
});

describe('the iterator', () => {
  it('ends with the queue', async () => {
    const queue = full(3);
    const items = rest(queue);
    await waiting();
    queue.enqueueSync(3);
    queue.close();
    expect(await items).toEqual(numbers(4));
    expect(await rest(queue)).toEqual([]);
  });

  it('ends with a stop, when what is there has been taken', async () => {
    const coord = new Coordinator();
    const queue = full(3, coord);
    coord.requestStop(new Error('why'));
    expect(await rest(queue)).toEqual(numbers(3));
    const idle = new BoundedQueue({ capacity: 1, coordinator: coord });
    expect(await rest(idle)).toEqual([]);
  });

  it('ends while it waits, by a stop', async () => {
    const coord = new Coordinator();
    const items = rest(new BoundedQueue({ capacity: 1, coordinator: coord }));
    await waiting();
    coord.requestStop();
    expect(await items).toEqual([]);
  });

  it('takes no more than it gives: a loop that is left loses nothing', async () => {
    const queue = full(6);
    for await (const item of queue) if (item === 1) break;
    await expect(
      (async () => {
        for await (const item of queue) if (item === 3) throw new RangeError('out');
      })(),
    ).rejects.toThrow('out');
    await waiting();
    expect(await queue.dequeueMany(9)).toEqual([4, 5]);
  });

  it('is one of several on a queue', async () => {
    const queue = full(100);
    queue.close();
    const [one, other] = await Promise.all([rest(queue), rest(queue)]);
    expect(new Set([...one, ...other])).toEqual(new Set(numbers(100)));
    expect(one.length + other.length).toBe(100);
  });
});

describe('a stop of the coordinator', () => {
  it('ends every wait at once, and join does not wait for them', async () => {
    const coord = new Coordinator();
    const [one, none] = [
      full(1, coord),
      new BoundedQueue<number>({ capacity: 1, coordinator: coord }),
    ];
    const waits = [
      ...numbers(20, 1).map((number) => one.enqueue(number)),
      ...numbers(20).map(() => none.dequeue()),
      none.dequeueMany(5),
    ];
    for (const wait of waits) coord.registerThread(wait);
    const outcomes = Promise.allSettled(waits);
    await waiting();
    coord.requestStop();
    for (const each of await outcomes) expect(each).toMatchObject({ reason: CANCELLED });
    await coord.join();
    expect(one.size).toBe(1);
  });

  it('is followed by CancelledErrors, and by what is there', async () => {
    const coord = new Coordinator();
    const queue = full(3, coord);
    queue.tryDequeue();
    coord.requestStop();
    await expect(queue.enqueue(9)).rejects.toMatchObject(CANCELLED);
    expect(thrown(() => queue.enqueueSync(9))).toMatchObject(CANCELLED);
    expect(thrown(() => queue.tryEnqueue(9))).toMatchObject(CANCELLED);
    expect(await queue.dequeue()).toBe(1);
    expect(queue.tryDequeue()).toBe(2);
    await expect(queue.dequeue()).rejects.toMatchObject(CANCELLED);
    await expect(queue.dequeueMany(2)).rejects.toMatchObject(CANCELLED);
    expect(thrown(() => queue.dequeueSync())).toMatchObject(CANCELLED);
    expect(thrown(() => queue.tryDequeue())).toMatchObject(CANCELLED);
  });

  it('tells tryEnqueue also where others are waiting', async () => {
    const coord = new Coordinator();
    const queue = full(1, coord);
    const wait = queue.enqueue(1).catch((error: unknown) => error);
    coord.requestStop();
    expect(thrown(() => queue.tryEnqueue(2))).toMatchObject(CANCELLED);
    expect(await wait).toMatchObject(CANCELLED);
  });

  it.each([
    ['plain', undefined],
    ['with an error', new RangeError('the reason')],
    ['with a primitive', 'the reason'],
  ])('%s is the cause, as the signal has it, and its errors are echoes', async (_, reason) => {
    const coord = new Coordinator();
    const queue = full(1, coord);
    const waits = Promise.allSettled([queue.enqueue(1), queue.enqueue(2)]);
    await waiting();
    coord.requestStop(reason);
    const errors = [
      ...(await waits).map((each) => (each.status === 'rejected' ? each.reason : undefined)),
      await queue.enqueue(3).catch((error: unknown) => error),
      thrown(() => queue.tryEnqueue(4)),
      thrown(() => {
        queue.tryDequeue();
        queue.dequeueSync();
      }),
    ];
    expect(errors).toHaveLength(5);
    for (const error of errors) {
      expect(error).toMatchObject(CANCELLED);
      expect((error as Error).cause).toBe(coord.signal.reason);
      coord.requestStop(error);
    }
    expect(coord.stopRecord).toMatchObject({ suppressed: [], suppressedCount: 0 });
  });

  it('that is cleared at once ends the waits that had begun, and no later ones', async () => {
    const coord = new Coordinator();
    const [one, none] = [
      full(1, coord),
      new BoundedQueue<number>({ capacity: 1, coordinator: coord }),
    ];
    const early = Promise.allSettled([one.enqueue(1), none.dequeue(), none.dequeueMany(2)]);
    await waiting();
    coord.requestStop();
    coord.clearStop();
    const late = [one.enqueue(2), none.dequeue()];
    for (const each of await early) expect(each).toMatchObject({ reason: CANCELLED });
    expect(one.tryDequeue()).toBe(0);
    none.enqueueSync(7);
    expect(await Promise.all(late)).toEqual([undefined, 7]);
    expect(one.tryDequeue()).toBe(2);
  });

  it.each<[string, (queue: BoundedQueue<number>) => Promise<unknown>]>([
    ['dequeue', (queue) => queue.dequeue()],
    ['dequeueMany', (queue) => queue.dequeueMany(2)],
    ['enqueue', (queue) => queue.enqueue(1).then(() => queue.enqueue(2))],
  ])('that is cleared at once is not made again by the task whose %s it ended', async (_, wait) => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 1, coordinator: coord });
    const task = coord.start(() => wait(queue));
    await waiting();
    coord.requestStop();
    coord.clearStop();
    await task;
    expect(coord.shouldStop()).toBe(false);
    await coord.join();
  });

  it('that came before a wait began, and was cleared, does not end the wait', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    coord.clearStop();
    const queue = new BoundedQueue<number>({ capacity: 1, coordinator: coord });
    const wait = queue.dequeue();
    await waiting();
    await queue.enqueue(1);
    expect(await wait).toBe(1);
  });

  it('of one coordinator is not one of another', async () => {
    const [coord, other] = [new Coordinator(), new Coordinator()];
    const queue = new BoundedQueue<number>({ capacity: 1, coordinator: coord });
    const wait = queue.dequeue();
    await waiting();
    other.requestStop();
    await waiting();
    queue.enqueueSync(1);
    expect(await wait).toBe(1);
  });

  it('of a parent is one of the child', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1, coordinator: coord.child() });
    const wait = queue.dequeue();
    await waiting();
    coord.requestStop();
    await expect(wait).rejects.toMatchObject(CANCELLED);
  });
});

describe('what a queue says of itself', () => {
  it('is its name, capacity, size and whether it is closed', () => {
    const queue = new BoundedQueue({ capacity: 5, name: 'frames' });
    expect(queue).toMatchObject({ name: 'frames', capacity: 5, size: 0, closed: false });
    queue.enqueueSync(1);
    queue.close();
    expect(queue).toMatchObject({ name: 'frames', capacity: 5, size: 1, closed: true });
  });

  it('is a name of its own if it was given none', () => {
    const names = numbers(3).map(() => new BoundedQueue({ capacity: 1 }).name);
    expect(new Set(names).size).toBe(3);
    expect(names.every((name) => name.length > 0)).toBe(true);
  });

  it('is in its errors', async () => {
    const queue = new BoundedQueue({ capacity: 1, name: 'frames' });
    await expect(queue.dequeue({ timeoutMs: 0 })).rejects.toThrow("'frames'");
    queue.close();
    await expect(queue.dequeue()).rejects.toThrow("'frames'");
    await expect(queue.enqueue(1)).rejects.toThrow("'frames'");
  });

  it('may be the largest capacity there is', async () => {
    const queue = new BoundedQueue<number>({ capacity: Number.MAX_SAFE_INTEGER });
    expect(queue.capacity).toBe(Number.MAX_SAFE_INTEGER);
    for (const number of numbers(3000)) expect(queue.tryEnqueue(number)).toBe(true);
    expect(await queue.dequeueMany(Number.MAX_SAFE_INTEGER)).toEqual(numbers(3000));
  });

  it('is in its handle, by which a thread attaches to one and the same object', () => {
    const queue = new BoundedQueue<number>({ capacity: 2 });
    expect(queue.handle).toEqual(structuredClone(queue.handle));
    expect(BoundedQueue.attach(queue.handle)).toBe(queue);
    expect(BoundedQueue.attach(structuredClone(queue.handle))).toBe(queue);
    expect(JSON.stringify(queue.handle).length).toBeLessThan(200);
  });
});

describe.each(['main thread', 'worker'])('the event loop of a %s', (where) => {
  it.each([
    ['pending dequeue', { item: 'from a worker' }],
    ['pending enqueue', { size: 1 }],
    ['stopped wait', { error: 'CancelledError' }],
  ])('is kept alive by a %s', async (story, said) => {
    const ended = await runScript('queue-event-loop', [story, where]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'ended')).toMatchObject(said);
  });

  it.each([
    ['idle queue', {}],
    ['settled waits', { items: [1, 2] }],
    ['timed-out waits', { errors: ['DeadlineExceededError', 'DeadlineExceededError'] }],
    ['aborted waits', { errors: ['AbortError', 'AbortError'] }],
    ['closed queue', { errors: ['CancelledError', 'OutOfRangeError'] }],
  ])('ends in spite of: %s', async (story, said) => {
    const ended = await runScript('queue-event-loop', [story, where]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'ended')).toMatchObject(said);
  });
});

describe('a call where the stack is full', () => {
  // V8 writes to stderr what it thinks of promises that reject there.
  it.each(['dequeue', 'enqueue'])('fails alone with a RangeError: %s', async (story) => {
    const ended = await runScript('full-stack', [story]);
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(saidOf(ended, 'ended')).toMatchObject({ errors: ['RangeError'] });
    expect(saidOf(ended, 'ended')['lost'] ?? 0).toBe(0);
  });
});

describe('a queue in which there is always something', () => {
  it.each<[string, (queue: BoundedQueue<number>) => Promise<unknown>]>([
    ['dequeue', (queue) => queue.dequeue()],
    ['dequeueMany', (queue) => queue.dequeueMany(3)],
    ['dequeue with timeoutMs: 0', (queue) => queue.dequeue({ timeoutMs: 0 })],
    [
      'enqueue',
      async (queue) => {
        await queue.enqueue(1);
        queue.tryDequeue();
      },
    ],
  ])('lets the event loop turn between two calls of %s', async (_, call) => {
    const queue = new BoundedQueue<number>({ capacity: 10 });
    const timer = { fired: false };
    setTimeout(() => {
      timer.fired = true;
    }, 1);
    // A limit of calls, not of time: if the event loop never turned, no test timeout could fire.
    for (let calls = 0; !timer.fired && calls < 1_000_000; calls++) {
      while (queue.size < 5) queue.enqueueSync(1);
      await call(queue);
    }
    expect(timer.fired).toBe(true);
  });

  it('lets it turn between the items of several iterators', async () => {
    const queue = new BoundedQueue<number>({ capacity: 10 });
    let fired = false;
    setTimeout(() => {
      fired = true;
      queue.close();
    }, 1);
    let passed = 0;
    const consume = async (): Promise<void> => {
      for await (const item of queue) {
        if (!fired && ++passed < 1_000_000) queue.tryEnqueue(item);
      }
    };
    for (let i = 0; i < 5; i++) queue.enqueueSync(i);
    await Promise.all([consume(), consume(), consume()]);
    expect(passed).toBeLessThan(1_000_000);
  });
});

describe('timeoutMs: 0', () => {
  it.each<[string, (queue: BoundedQueue<number>) => Promise<unknown>]>([
    ['enqueue', (queue) => queue.enqueue(1, { timeoutMs: 0 })],
    ['dequeue', () => new BoundedQueue({ capacity: 1 }).dequeue({ timeoutMs: 0 })],
    ['dequeueMany', () => new BoundedQueue({ capacity: 1 }).dequeueMany(2, { timeoutMs: 0 })],
  ])('lets the event loop turn before %s rejects', async (_, call) => {
    const queue = full(1);
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await expect(call(queue)).rejects.toMatchObject(TIMED_OUT);
    expect(turned).toBe(true);
  });

  it('takes what is there, and tells the end, though others of this thread wait', async () => {
    const queue = new BoundedQueue<number>({ capacity: 5 });
    const wait = queue.dequeue();
    queue.enqueueSync(1);
    queue.enqueueSync(2);
    const polled = await queue.dequeue({ timeoutMs: 0 });
    expect(new Set([polled, await wait])).toEqual(new Set([1, 2]));
    const another = queue.dequeue();
    queue.close();
    await Promise.all([
      expect(queue.dequeue({ timeoutMs: 0 })).rejects.toThrow(OutOfRangeError),
      expect(another).rejects.toThrow(OutOfRangeError),
    ]);
  });

  it('enqueues where there is room, behind those of this thread that wait for it', async () => {
    const queue = new BoundedQueue<number>({ capacity: 2 });
    queue.enqueueSync(1);
    queue.enqueueSync(2);
    const wait = queue.enqueue(3);
    queue.tryDequeue();
    queue.tryDequeue();
    await queue.enqueue(4, { timeoutMs: 0 });
    await wait;
    expect([queue.tryDequeue(), queue.tryDequeue()]).toEqual([3, 4]);
  });
});

describe('an iterator', () => {
  it('that is returned from does not wait for the item that its next() waits for', async () => {
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const iterator = queue[Symbol.asyncIterator]();
    const next = iterator.next();
    await turn();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    queue.enqueueSync(1);
    expect(queue.size).toBe(1);
  });
});

describe('a batch', () => {
  /** Every tenth item is no JSON text. */
  const itemOf = (i: number, text: string): unknown =>
    i % 10 === 3 ? new Map([[i, text]]) : [i, text];

  it('of more text than is handed over at once arrives whole and in order', async () => {
    const count = 1_200;
    const text = 'x'.repeat(32_000); // 38 MB in all, and 32 MiB go at once
    const queue = new BoundedQueue({ capacity: count });
    for (let i = 0; i < count; ++i) queue.tryEnqueue(itemOf(i, text));
    const items = await queue.dequeueMany(count);
    expect(items).toHaveLength(count);
    const wrong = items.filter((item, i) => {
      const pair = item instanceof Map ? [...item][0] : item;
      const [number, its] = pair as [number, string];
      return number !== i || its !== text;
    });
    expect(wrong).toEqual([]);
  });
});
