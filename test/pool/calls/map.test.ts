/** `cluster.map`: a function with each item, as many at a time as there is room for. */

import { CancelledError, type ClusterCoordinator, FailedPreconditionError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

async function all<T>(results: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const result of results) found.push(result);
  return found;
}

/** Items of which the test sees how many were pulled, and whether the source was closed. */
class Source<T> implements Iterable<T> {
  pulled = 0;
  isClosed = false;
  readonly #items: readonly T[];

  constructor(items: readonly T[]) {
    this.#items = items;
  }

  *[Symbol.iterator](): Generator<T> {
    try {
      for (const item of this.#items) {
        this.pulled += 1;
        yield item;
      }
    } finally {
      this.isClosed = true;
    }
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, item) => item);

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);
  const held = (...names: string[]): [string, string][] => names.map((name) => [visits.path, name]);
  const works = async (cluster: ClusterCoordinator): Promise<void> => {
    expect(await cluster.run('add', [1, 2])).toBe(3);
  };

  describe('map', () => {
    it('throws the error of a getter of the source', async () => {
      const broken = {
        get value(): never {
          throw new RangeError('unread');
        },
        done: false,
      };
      const later = { [Symbol.asyncIterator]: () => ({ next: async () => broken }) };
      const now = { [Symbol.iterator]: () => ({ next: () => broken }) };
      for (const items of [later, now]) {
        await expect(all(start(1).map('double', items))).rejects.toThrow('unread');
      }
    });

    it('does not take a string for its characters', () => {
      const make = (): unknown => start(1).map('double', 'abc');
      expect(make).toThrow("Received type string ('abc'): write [...text] for its characters");
    });

    it('yields the results in the order of the items', async () => {
      const cluster = start(2);
      const expected = numbers(1_000).map((item) => item * 2);
      expect(await all(cluster.map(tasks.double, numbers(1_000)))).toEqual(expected);
      async function* later(): AsyncGenerator<number> {
        yield* numbers(1_000);
      }
      expect(await all(cluster.map('double', later(), { concurrency: 7 }))).toEqual(expected);
      const promises = [1, Promise.resolve(2)];
      expect(await all(cluster.map('double', promises))).toEqual([2, 4]);
      expect(await all(cluster.map('double', []))).toEqual([]);
      expect((await all(cluster.map('double', new Set([1]), { ordered: false }))).length).toBe(1);
    });

    it('pulls nothing before its first next, and then no more than there is room for', async () => {
      const cluster = start(2);
      await cluster.ready();
      const source = new Source(held('a', 'b', 'c', 'd', 'e', 'f', 'g'));
      const results = cluster.map('holdItem', source);
      expect(source.pulled).toBe(0);
      const first = results.next();
      const [a, b] = [await visits.next('a'), await visits.next('b')];
      expect(source.pulled).toBe(4);
      b.pass('B');
      const c = await visits.next('c');
      expect(source.pulled).toBe(4); // b waits for its turn
      expect(await isPending(first)).toBe(true);
      a.pass('A');
      expect(await first).toEqual({ done: false, value: 'A' });
      expect(await results.next()).toEqual({ done: false, value: 'B' });
      expect(source.pulled).toBe(6);
      c.pass();
      await results.return?.();
      await works(cluster);
    });

    it('has no more ahead than `concurrency`, also of short functions', async () => {
      const cluster = start(2);
      const source = new Source(numbers(5_000));
      let yielded = 0;
      let most = 0;
      for await (const _ of cluster.map('double', source, { concurrency: 3 })) {
        yielded += 1;
        most = Math.max(most, source.pulled - yielded);
      }
      expect([yielded, most]).toEqual([5_000, 3]);
    });

    it('yields them as they come, if asked to', async () => {
      const cluster = start(2);
      const results = cluster.map('holdItem', held('a', 'b'), { ordered: false });
      const first = results.next();
      const [a, b] = [await visits.next('a'), await visits.next('b')];
      b.pass('B');
      expect((await first).value).toBe('B');
      a.pass('A');
      expect(await all(results)).toEqual(['A']);
    });

    it('throws the first error in its turn, and cancels what is in flight', async () => {
      const cluster = start(2);
      const source = new Source(held('a', 'b', 'c', 'd', 'e'));
      const results = cluster.map('holdItem', source, { concurrency: 3 });
      const first = results.next();
      const [a, b] = [await visits.next('a'), await visits.next('b')];
      b.fail('broken');
      const c = await visits.next('c');
      a.pass('A');
      expect((await first).value).toBe('A');
      await expect(results.next()).rejects.toThrow('broken');
      expect(await c.told()).toBe('aborted: CancelledError');
      expect(await results.next()).toEqual({ done: true, value: undefined });
      expect([source.pulled, source.isClosed]).toEqual([3, true]);
      await cluster.join(); // the error was the map's alone
      await works(cluster);
    });

    it('throws one error, also when its source has failed meanwhile', async () => {
      const cluster = start(1);
      function* broken(): Generator<string> {
        yield 'first';
        throw new RangeError('second');
      }
      const results = cluster.map('fail', broken());
      await expect(results.next()).rejects.toThrow('first');
      expect((await results.next()).done).toBe(true);
      const left = cluster.map('fail', broken(), { onError: 'settle' });
      await left.next();
      await left.return?.();
      expect((await left.next()).done).toBe(true);
    });

    it('throws the first error that comes, where there is no order', async () => {
      const cluster = start(2);
      const results = cluster.map('holdItem', held('a', 'b'), { ordered: false });
      const first = errorOf(results.next());
      const [a, b] = [await visits.next('a'), await visits.next('b')];
      b.fail('broken');
      expect(await first).toMatchObject({ message: 'broken' });
      expect(await a.told()).toBe('aborted: CancelledError');
    });

    it('cancels what is in flight, and closes the source, when the loop is left', async () => {
      const cluster = start(2);
      const source = new Source([...held('a', 'b', 'c')]);
      const results = cluster.map('holdItem', source, { concurrency: 2 });
      const left = (async () => {
        for await (const result of results) return result;
        return undefined;
      })();
      const [a, b] = [await visits.next('a'), await visits.next('b')];
      a.pass('A');
      expect(await left).toBe('A');
      expect(await b.told()).toBe('aborted: CancelledError');
      expect(source.isClosed).toBe(true);
      await works(cluster);
    });

    it('yields errors with their items, if asked to', async () => {
      const cluster = start(2);
      const items = [1, 'two', 3];
      const settled = await all(cluster.map('checked', items, { onError: 'settle' }));
      expect(settled).toEqual([
        { status: 'fulfilled', value: 1, item: 1 },
        { status: 'rejected', reason: expect.any(RangeError), item: 'two' },
        { status: 'fulfilled', value: 3, item: 3 },
      ]);
      const odd = await all(cluster.map('checked', [() => {}], { onError: 'settle' }));
      expect(odd).toMatchObject([{ status: 'rejected', reason: { name: 'DataCloneError' } }]);
    });

    it('ends with the reason of its signal', async () => {
      const cluster = start(2);
      const abort = new AbortController();
      const source = new Source(held('a', 'b', 'c'));
      const { signal } = abort;
      const results = cluster.map('holdItem', source, { signal, onError: 'settle' });
      const first = errorOf(results.next());
      const a = await visits.next('a');
      abort.abort('enough');
      expect(await first).toBe('enough');
      expect(await a.told()).toBe('aborted: CancelledError');
      expect(source.isClosed).toBe(true);
      expect(await errorOf(cluster.map('double', [1], { signal }).next())).toBe('enough');
    });

    it('has a deadline for each call', async () => {
      const cluster = start(1);
      await cluster.ready();
      const options = { timeoutMs: 300, onError: 'settle' } as const;
      const settled = await all(cluster.map('holdItem', held('a'), options));
      expect(settled).toMatchObject([{ reason: { name: 'DeadlineExceededError' } }]);
    });

    it('throws what its source throws, after the results before it', async () => {
      const cluster = start(2);
      function* broken(): Generator<number> {
        yield 1;
        yield 2;
        throw new RangeError('no more');
      }
      const results = cluster.map('double', broken(), { onError: 'settle' });
      expect(await results.next()).toMatchObject({ value: { value: 2 } });
      expect(await results.next()).toMatchObject({ value: { value: 4 } });
      await expect(results.next()).rejects.toThrow('no more');
      expect((await results.next()).done).toBe(true);
      const source = new Source([Promise.reject(new RangeError('not there'))]);
      await expect(cluster.map('double', source).next()).rejects.toThrow('not there');
      expect(source.isClosed).toBe(true);
    });

    it('takes what a loop takes as the end and as no result of an iterator', async () => {
      const cluster = start();
      const giving = (result: unknown): Iterable<number> & AsyncIterable<number> => ({
        [Symbol.iterator]: () => ({ next: () => result as never }),
        [Symbol.asyncIterator]: () => ({ next: async () => result as never }),
      });
      for (const items of [giving(7), { [Symbol.iterator]: giving(7)[Symbol.iterator] }]) {
        const error = await errorOf(cluster.map('double', items).next());
        expect(error).toBeInstanceOf(TypeError);
        expect(error.message).toContain('Iterator result 7 is not an object');
      }
      expect((await cluster.map('double', giving({ done: 1 })).next()).done).toBe(true);
    });

    it('waits while the line is full', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const expected = numbers(50).map((item) => item * 2);
      expect(await all(cluster.map('double', numbers(50), { concurrency: 20 }))).toEqual(expected);
    });

    it('ends with the cluster, also where its source gives nothing', async () => {
      const cluster = start(1);
      const never: AsyncIterable<number> = {
        [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
      };
      const waiting = errorOf(cluster.map('double', never).next());
      const results = cluster.map('holdItem', held('a', 'b', 'c'), { onError: 'settle' });
      const first = results.next();
      await visits.next('a');
      const closing = cluster.close();
      expect(await waiting).toBeInstanceOf(FailedPreconditionError);
      expect(await first).toMatchObject({
        value: { status: 'rejected', reason: expect.any(CancelledError), item: [visits.path, 'a'] },
      });
      expect((await results.next()).value).toMatchObject({ status: 'rejected' });
      expect(await errorOf(results.next())).toBeInstanceOf(FailedPreconditionError);
      await visits.close();
      await visits.open();
      await closing;
    });

    it('throws what `run` throws, where the cluster has ended before', async () => {
      const cluster = start();
      await cluster.close();
      for (const onError of ['throw', 'settle'] as const) {
        const error = await errorOf(all(cluster.map('echo', [1, 2], { onError })));
        expect(error).toBe(await errorOf(cluster.run('echo', [1])));
        expect(error).toBeInstanceOf(FailedPreconditionError);
      }
    });

    it('takes a data set of the worker as its item', async () => {
      const cluster = start(1);
      const numbersOfWorker = cluster.createPerWorkerDataset('numbers', [0, 5]).iterator();
      const items = [numbersOfWorker, numbersOfWorker];
      expect(await all(cluster.map('next', items))).toMatchObject([{ value: 0 }, { value: 1 }]);
    });

    it('several next that wait are served in order', async () => {
      const cluster = start(2);
      const results = cluster.map('double', [1, 2]);
      const [one, two, end] = await Promise.all([results.next(), results.next(), results.next()]);
      expect([one.value, two.value, end.done]).toEqual([2, 4, true]);
    });

    it('refuses wrong arguments, and pulls nothing then', async () => {
      const cluster = start();
      const source = new Source([1]);
      const wrong = (items: any, options?: any): unknown => cluster.map('double', items, options);
      expect(() => wrong(1)).toThrow(TypeError);
      expect(() => wrong('text')).toThrow(TypeError);
      expect(() => wrong(source, { concurrency: 0 })).toThrow(RangeError);
      expect(() => wrong(source, { onError: 'ignore' })).toThrow(TypeError);
      expect(() => wrong(source, { ordered: 1 })).toThrow(TypeError);
      expect(() => wrong(source, { concurency: 1 })).toThrow(/Did you mean 'concurrency'/);
      await cluster.ready(); // else a slow start lets the call in with a name that nobody has checked
      expect(await errorOf(cluster.map('nobody', source as any).next())).toBeInstanceOf(TypeError);
      expect(source.pulled).toBe(0);
    });

    it('is run again where a worker dies', async () => {
      const cluster = start(1);
      expect(await all(cluster.map('dieUntil', [2, 1, 2]))).toEqual([2, 1, 2]);
    });
  });
});
