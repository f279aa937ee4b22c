/** Results and errors of functions, `fetch`, and `currentCall`. */

import {
  currentCall,
  DeadlineExceededError,
  FailedPreconditionError,
  RemoteValue,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('what comes of a function', () => {
    it('its result, whether it comes at once or later', async () => {
      const cluster = start(2);
      const values = [
        await cluster.schedule(tasks.add, [1, 2]),
        await cluster.schedule(tasks.addLater, [3, 4]),
        await cluster.schedule('nothing'),
        await cluster.schedule('echo', [new Map([['a', new Date(5)]])]),
      ];
      expect(await cluster.fetch(values)).toEqual([3, 7, undefined, new Map([['a', new Date(5)]])]);
      expect(values.map(({ state }) => state)).toEqual(Array(4).fill('ready'));
      expect(await values[0]?.fetch()).toBe(3); // a second fetch
    });

    it('comes, though a loop asks without end whether all is done', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const turns: string[] = [];
      setImmediate(() => turns.push('turned'));
      // So often takes more than a moment, and ends also where the event loop is starved.
      for (let n = 0; n < 1_000_000 && turns.length === 0; n++) {
        expect(await cluster.done()).toBe(false);
      }
      expect(turns).toEqual(['turned']);
      visit.pass();
    });

    it('is pending until then', async () => {
      const cluster = start();
      const { value, visit } = await running(cluster, 'a');
      expect(value).toBeInstanceOf(RemoteValue);
      expect(value.state).toBe('pending');
      expect(await cluster.done()).toBe(false);
      visit.pass('passed');
      expect(await value.fetch()).toBe('passed');
      expect(value.state).toBe('ready');
      expect(await cluster.done()).toBe(true);
    });

    it('its error, with class, code and fields, as often as one asks', async () => {
      const cluster = start();
      const value = await cluster.schedule('fail', ['broken']);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(RangeError);
      expect(error).toMatchObject({ message: 'broken', code: 'E_TEST', extra: { of: 'broken' } });
      expect(error.stack).toContain('cluster-tasks.mjs');
      expect(value.state).toBe('failed');
      expect(await errorOf(value.fetch())).toBe(error);
      expect(await errorOf(cluster.join())).toBe(error);
    });

    it('an error that is undefined is one', async () => {
      const cluster = start();
      const value = await cluster.schedule('throwUndefined');
      const told = await Promise.allSettled([value.fetch(), cluster.join()]);
      expect(told.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      expect(value.state).toBe('failed');
      await cluster.join();
    });

    it('that is a generator cannot come back: the error says what can', async () => {
      const cluster = start();
      for (const name of ['numbers', 'numbersLater']) {
        const error = await errorOf(cluster.run(name, [0, 1]));
        expect(error.name).toBe('DataCloneError');
        expect(error.message).toMatch(/it is a generator\..*currentCall\(\)\.report\(value\)/);
      }
    });

    it('a result that cannot be sent is an error of the function', async () => {
      const cluster = start();
      const value = await cluster.schedule('unsendable');
      expect(await errorOf(value.fetch())).toMatchObject({
        name: 'DataCloneError',
        message: expect.stringContaining('result.in[1]'),
      });
      await expect(cluster.join()).rejects.toMatchObject({ name: 'DataCloneError' });
      expect(await (await cluster.schedule('add', [1, 1])).fetch()).toBe(2);
    });

    it('an error of a getter of the result is the error of the function', async () => {
      const cluster = start();
      expect(await errorOf(cluster.run('throwInGetter', ['EMINE']))).toMatchObject({
        name: 'Error',
        message: 'mine',
        code: 'EMINE',
      });
    });

    it('a structure that cannot be read fetches nothing', async () => {
      const cluster = start();
      const value = await cluster.schedule('fail', ['broken']);
      const unread = {
        get field(): never {
          throw new RangeError('unread');
        },
      };
      // A rejection that nobody handles would fail this file.
      await expect(cluster.fetch([value, unread])).rejects.toThrow('unread');
      await expect(cluster.join()).rejects.toThrow('broken');
    });

    it('an object keeps the order of its keys', async () => {
      const cluster = start();
      const sum = await cluster.schedule('add', [1, 2]);
      expect(Object.entries(await cluster.fetch({ sum, step: 5 }))).toEqual([
        ['sum', 3],
        ['step', 5],
      ]);
    });

    it('an array with holes keeps them, however long it is', async () => {
      const cluster = start();
      const sparse: unknown[] = [];
      sparse[3e8] = await cluster.schedule('add', [1, 2]);
      const fetched = await cluster.fetch(sparse);
      expect(Object.keys(fetched)).toEqual(['300000000']);
      expect(fetched[3e8]).toBe(3);
    });

    it.each([1_500, 2_500, 5_000, 50_000])(
      'a result of %i objects in each other arrives, or is an error of the function',
      async (depth) => {
        const cluster = start(1, { retries: 20 });
        const value = await cluster.schedule('nested', [depth]);
        const beside = await cluster.schedule('add', [1, 1]);
        const answer = await value.fetch().then(tasks.depthOf, ({ name }) => name);
        expect([depth, 'DataCloneError', 'RangeError']).toContain(answer);
        if (answer === depth) expect(await beside.fetch()).toBe(2);
        await cluster.join().catch(() => {}); // rejects with the function's error
        expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
        expect(cluster.workers[0]?.restarts).toBeLessThan(2);
      },
    );

    it('runs first in, first out', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'first');
      const names = ['a', 'b', 'c', 'd'];
      for (const name of names) await cluster.schedule('hold', [visits.path, name]);
      visit.pass();
      for (const name of names) (await visits.next(name)).pass();
      await cluster.join();
      expect(visits.names).toEqual(['first', ...names]);
    });

    it('join and done come after what was scheduled, whether that was awaited or not', async () => {
      const cluster = start();
      const ways = [
        () => cluster.schedule('hold', [visits.path, 'a']),
        () => cluster.schedule(tasks.hold, [visits.path, 'a']),
      ];
      for (const way of ways) {
        const scheduled = way();
        const joined = cluster.join();
        const done = cluster.done();
        const visit = await visits.next('a');
        expect(await isPending(joined)).toBe(true);
        expect(await done).toBe(false);
        visit.pass();
        await joined;
        expect((await scheduled).state).toBe('ready');
      }
    });

    it('keeps the order of calls, however the functions are known', async () => {
      const cluster = start();
      const numbers = cluster.createPerWorkerDataset('numbers', [0, 9]).iterator();
      const calls = [
        cluster.schedule(tasks.hold, [visits.path, 'a']),
        cluster.schedule('hold', [visits.path, 'b']),
        cluster.schedule('holdAndNext', [visits.path, 'c', numbers]),
        cluster.schedule('hold', [visits.path, 'd']),
      ];
      for (const name of ['a', 'b', 'c', 'd']) (await visits.next(name)).pass();
      await cluster.join();
      expect(visits.names).toEqual(['a', 'b', 'c', 'd']);
      await Promise.all(calls);
    });
  });

  describe('fetch', () => {
    it('walks arrays, plain objects, Maps and Sets, in cycles, too', async () => {
      const cluster = start();
      const one = await cluster.schedule('add', [0, 1]);
      const two = await cluster.schedule('add', [1, 1]);
      const date = new Date(0);
      const structure: Record<string, unknown> = {
        list: [one, [two, 'text']],
        map: new Map<unknown, unknown>([['key', { one }]]),
        set: new Set([one, two]),
        date,
        nothing: null,
      };
      structure['self'] = structure;
      const fetched: any = await cluster.fetch(structure);
      expect(fetched.list).toEqual([1, [2, 'text']]);
      expect(fetched.map).toEqual(new Map([['key', { one: 1 }]]));
      expect([...fetched.set]).toEqual([1, 2]);
      expect(fetched.date).toBe(date);
      expect(fetched.self).toBe(fetched);
      expect(structure['list']).toEqual([one, [two, 'text']]); // the original is unchanged
    });

    it('gives up after timeoutMs or with its signal, and leaves the function alone', async () => {
      const cluster = start();
      const { value, visit } = await running(cluster, 'a');
      const late = await errorOf(value.fetch({ timeoutMs: 1 }));
      expect(late).toBeInstanceOf(DeadlineExceededError);
      const abort = new AbortController();
      const fetched = value.fetch({ signal: abort.signal, timeoutMs: Number.POSITIVE_INFINITY });
      abort.abort('enough');
      expect(await errorOf(fetched)).toBe('enough');
      expect(await errorOf(value.fetch({ signal: abort.signal }))).toBe('enough');
      expect(value.state).toBe('pending');
      visit.pass('passed');
      expect(await value.fetch({ timeoutMs: 60_000 })).toBe('passed');
      expect(await errorOf(value.fetch({ signal: abort.signal }))).toBe('enough'); // although the value is there
      await cluster.join();
    });

    it('fails with what the first of them to fail comes to', async () => {
      const cluster = start(2);
      const { value, visit } = await running(cluster, 'a');
      const broken = await cluster.schedule('fail', ['broken']);
      await expect(cluster.fetch({ value, deep: [broken] })).rejects.toThrow('broken');
      visit.pass();
      await expect(cluster.join()).rejects.toThrow('broken');
    });
  });

  describe('currentCall', () => {
    it('says which worker, and which attempt', async () => {
      const cluster = start();
      const place = await (await cluster.schedule('where')).fetch();
      expect(place).toMatchObject({ workerIndex: 0, attempt: 1 });
      expect(place.pid === process.pid).toBe(kind.isThread);
      expect(place.threadId > 0).toBe(kind.hasThreads);
      expect(cluster.workers).toMatchObject([{ name: 'worker:0', index: 0, pid: place.pid }]);
    });

    it('is the same after an await', async () => {
      expect(await (await start().schedule('afterAwait')).fetch()).toBe(true);
    });

    it('has a signal for as many listeners as one likes', async () => {
      expect(await (await start().schedule('warningsOfManyListeners')).fetch()).toEqual([]);
    });

    it('is an error outside', () => {
      expect(() => currentCall()).toThrow(FailedPreconditionError);
      expect(() => tasks.where()).toThrow(FailedPreconditionError);
    });
  });
});
