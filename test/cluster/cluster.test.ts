// What the cluster does, as its users see it: in threads and in processes. Functions stop over
// at the test (support/visits.ts), so that what runs and what waits is known.

import { execFile } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import {
  CancelledError,
  ClosureInputError,
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  ClusterNotReadyError,
  currentTask,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  LocalStrategy,
  type ReadinessReport,
  RemoteValue,
  transfer,
  UnavailableError,
} from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as tasks from '../fixtures/cluster-tasks.mjs';
import { isPending, turn } from '../support/gate.ts';
import { type Visit, Visits } from '../support/visits.ts';

const module = new URL('../fixtures/cluster-tasks.mjs', import.meta.url);
const program = fileURLToPath(new URL('../fixtures/cluster-program.mjs', import.meta.url));

let visits: Visits;
let clusters: ClusterCoordinator[] = [];

beforeEach(async () => {
  visits = await Visits.open();
});

afterEach(async () => {
  // Functions that still wait for the test end with their connection.
  const closing = clusters.map((cluster) => cluster.close());
  clusters = [];
  await visits.close();
  await Promise.all(closing);
});

const errorOf = async (promise: Promise<unknown>): Promise<any> => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It has not failed');
};

describe.each(['thread', 'process'] as const)('workers as %s', (isolation) => {
  function start(workers = 1, options: ClusterCoordinatorOptions = {}): ClusterCoordinator {
    const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers, isolation }), {
      cancelGraceMs: 600_000,
      ...options,
    });
    clusters.push(cluster);
    return cluster;
  }

  /** A function that runs, and goes on when the test says so. */
  async function running(
    cluster: ClusterCoordinator,
    name: string,
  ): Promise<{ value: RemoteValue<string>; visit: Visit }> {
    const value = await cluster.schedule('hold', [visits.path, name]);
    return { value, visit: await visits.next(name) };
  }

  /** One that has failed, of which nobody has been told. */
  async function failed(cluster: ClusterCoordinator, message: string): Promise<void> {
    const value = await cluster.schedule('fail', [message]);
    await expect(value.fetch()).rejects.toThrow(message);
  }

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
      expect(await values[0]?.fetch()).toBe(3); // again
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

    it('a result that cannot be sent is an error of the function', async () => {
      const cluster = start();
      const value = await cluster.schedule('unsendable');
      expect(await errorOf(value.fetch())).toMatchObject({ name: 'DataCloneError' });
      await expect(cluster.join()).rejects.toMatchObject({ name: 'DataCloneError' });
      expect(await (await cluster.schedule('add', [1, 1])).fetch()).toBe(2);
    });

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

  describe('the first error', () => {
    it.each(['join', 'done', 'schedule'] as const)(
      'is told once by %s, after everything in flight has ended',
      async (call) => {
        const cluster = start(2);
        const { visit } = await running(cluster, 'a');
        await failed(cluster, 'broken');
        const told =
          call === 'schedule' ? cluster.schedule('add', [1, 2]) : (cluster[call]() as Promise<any>);
        expect(await isPending(told)).toBe(true);
        visit.pass();
        await expect(told).rejects.toThrow('broken');
        await cluster.join();
        expect(await cluster.done()).toBe(true);
        expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
      },
    );

    it('hides those that come after it', async () => {
      const cluster = start(2);
      const [a, b] = [await running(cluster, 'a'), await running(cluster, 'b')];
      a.visit.fail('one');
      await expect(a.value.fetch()).rejects.toThrow('one');
      b.visit.fail('two');
      await expect(b.value.fetch()).rejects.toThrow('two');
      await expect(cluster.join()).rejects.toThrow('one');
      await cluster.join();
    });

    it('cancels what is in line at once, so that fetch never hangs', async () => {
      const cluster = start(2);
      const [a, b] = [await running(cluster, 'a'), await running(cluster, 'b')];
      const queued = [];
      for (const name of ['c', 'd']) {
        queued.push(await cluster.schedule('hold', [visits.path, name]));
      }
      const fetched = cluster.fetch(queued);
      b.visit.fail('broken');
      const error = await errorOf(fetched);
      expect(error).toBeInstanceOf(CancelledError);
      expect(error.message).toContain('please reschedule');
      expect(error.cause).toMatchObject({ name: 'RangeError', message: 'broken' });
      expect(queued.map(({ state }) => state)).toEqual(['cancelled', 'cancelled']);
      expect(a.value.state).toBe('pending');
      a.visit.pass();
      await expect(cluster.join()).rejects.toThrow('broken');
      expect(await a.value.fetch()).toBe('');
      expect(visits.names.toSorted()).toEqual(['a', 'b']); // nothing else was started
    });

    it('aborts the signals of what runs', async () => {
      const cluster = start(2);
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      await failed(cluster, 'broken');
      expect(await visit.told()).toBe('CancelledError: Another function has failed');
      await expect(value.fetch()).rejects.toBeInstanceOf(CancelledError);
      expect(value.state).toBe('cancelled');
      await expect(cluster.join()).rejects.toThrow('broken');
    });

    it('is thrown by exactly one of several joins', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const joins = [cluster.join(), cluster.join(), cluster.join()];
      visit.fail('broken');
      const told = await Promise.allSettled(joins);
      expect(told.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    });

    it('is thrown by the oldest of several blocked schedule calls, and the others go on', async () => {
      const cluster = start(2, { maxQueued: 1 });
      const [a, b] = [await running(cluster, 'a'), await running(cluster, 'b')];
      const queued = await cluster.schedule('echo', ['queued']);
      const blocked = [1, 2, 3].map((each) => cluster.schedule('echo', [each]));
      expect(await isPending(Promise.race(blocked))).toBe(true);
      a.visit.fail('broken');
      await expect(queued.fetch()).rejects.toThrow(CancelledError);
      expect(await isPending(Promise.race(blocked))).toBe(true); // until b has ended
      b.visit.pass();
      await expect(blocked[0]).rejects.toThrow('broken');
      const others = await Promise.all(blocked.slice(1));
      expect(await cluster.fetch(others)).toEqual([2, 3]);
      await cluster.join();
    });

    it('nobody has to look at: the program goes on', async () => {
      const cluster = start();
      await failed(cluster, 'broken'); // and no unhandled rejection of anything
      await turn();
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
      expect(structure['list']).toEqual([one, [two, 'text']]); // as it was
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
      expect(await value.fetch({ signal: abort.signal })).toBe('passed'); // it is there
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

  describe('which function', () => {
    it('an export itself, its name, or the same of a copy of the module', async () => {
      const cluster = start();
      const copy = (await import('../fixtures/cluster-tasks.mjs?copy' as string)) as typeof tasks;
      expect(copy.add).not.toBe(tasks.add);
      for (const add of [tasks.add, copy.add]) {
        expect(await (await cluster.schedule(add, [1, 2])).fetch()).toBe(3);
      }
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });

    it.each([
      ['a function that is no export', () => 1],
      ['one of the same name', { add: (a: number) => a }.add],
      ['a name that is not exported', 'subtract'],
      ['the name of something else', 'VERSION'],
      ['the name of an inherited property', 'toString'],
    ])('refuses %s, and says what to pass', async (_what, fn) => {
      const cluster = start();
      const error = await errorOf(cluster.schedule(fn as string, [1]));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_INVALID_ARG_TYPE');
      expect(error.message).toMatch(/pass the name/);
      await cluster.join(); // nothing was put in, and nothing has failed
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });
  });

  it('a call that is refused leaves those before and after it alone', async () => {
    const cluster = start(); // no worker is there yet
    const before = cluster.schedule('add', [1, 2]);
    const refused = errorOf(cluster.schedule(() => 1));
    const after = cluster.schedule(tasks.add, [3, 4]);
    expect(await refused).toBeInstanceOf(TypeError);
    expect(await cluster.fetch(await Promise.all([before, after]))).toEqual([3, 7]);
  });

  describe('arguments', () => {
    it('are copied when schedule is called', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const given = { list: [1, 2] };
      const scheduled = [
        cluster.schedule('echo', [given]),
        cluster.schedule(tasks.echo, [given]), // which has to be looked up first
      ];
      given.list.push(3);
      visit.pass();
      const values = await Promise.all(scheduled);
      expect(await cluster.fetch(values)).toEqual([{ list: [1, 2] }, { list: [1, 2] }]);
    });

    it.each([
      ['itself', (value: unknown) => value],
      ['in an array', (value: unknown) => [[value]]],
      ['in an object', (value: unknown) => ({ a: { b: value } })],
      ['in one without a prototype', (value: unknown) => ({ __proto__: null, value })],
      ['in a Map', (value: unknown) => new Map([[1, value]])],
      ['as the key of a Map', (value: unknown) => new Map([[value, 1]])],
      ['in a Set', (value: unknown) => new Set([value])],
    ])('no RemoteValue %s', async (_where, wrap) => {
      const cluster = start();
      const value = await cluster.schedule('add', [1, 2]);
      await expect(cluster.schedule('echo', [wrap(value)])).rejects.toThrow(InvalidArgumentError);
      await cluster.join();
    });

    it('that cannot be copied are refused by schedule', async () => {
      const cluster = start();
      for (const value of [() => {}, Symbol('a'), { deep: [() => {}] }]) {
        await expect(cluster.schedule('echo', [value])).rejects.toMatchObject({
          name: 'DataCloneError',
        });
      }
      await cluster.join();
    });
  });

  describe('a deadline or a signal', () => {
    it('while it waits for room: schedule rejects', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('echo', ['queued']);
      const abort = new AbortController();
      const { signal } = abort;
      const late = cluster.schedule('hold', [visits.path, 'late'], { timeoutMs: 1 });
      const aborted = errorOf(cluster.schedule('hold', [visits.path, 'aborted'], { signal }));
      await expect(late).rejects.toThrow(DeadlineExceededError);
      abort.abort('enough');
      expect(await aborted).toBe('enough');
      visit.pass();
      await cluster.join(); // it has not been in line: nothing has failed
      expect(visits.names).toEqual(['a']);
    });

    it('in line: it is never started', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const abort = new AbortController();
      const { signal } = abort;
      const aborted = await cluster.schedule('hold', [visits.path, 'aborted'], { signal });
      abort.abort('enough');
      expect(await errorOf(aborted.fetch())).toBe('enough');
      expect(aborted.state).toBe('cancelled');
      visit.pass();
      await cluster.join(); // what its caller has cancelled is no error
      expect(visits.names).toEqual(['a']);
    });

    it('in line: that it is too late is an error', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const late = await cluster.schedule('hold', [visits.path, 'late'], { timeoutMs: 1 });
      const error = await errorOf(late.fetch());
      expect(error).toBeInstanceOf(DeadlineExceededError);
      expect(late.state).toBe('failed');
      visit.pass();
      expect(await errorOf(cluster.join())).toBe(error);
      expect(visits.names).toEqual(['a']);
    });

    it('while it runs: it is asked to end, and join waits until it has', async () => {
      const cluster = start();
      const abort = new AbortController();
      const { signal } = abort;
      const value = await cluster.schedule('untilToldToStop', [visits.path, 'a'], { signal });
      const visit = await visits.next('a');
      const joined = cluster.join();
      abort.abort(new RangeError('enough'));
      await expect(value.fetch()).rejects.toThrow('enough');
      expect(value.state).toBe('cancelled');
      expect(await visit.told()).toBe('told to stop');
      await joined;
      expect(cluster.workers[0]?.restarts).toBe(0);
    });

    it('while it runs: its signal has the reason', async () => {
      const cluster = start();
      const options = { timeoutMs: 1_000 };
      const value = await cluster.schedule('untilAborted', [visits.path, 'a'], options);
      const visit = await visits.next('a');
      expect(await visit.told()).toMatch(/^DeadlineExceededError: .*'untilAborted'.* 1000 ms/);
      await expect(value.fetch()).rejects.toThrow(DeadlineExceededError);
      await expect(cluster.join()).rejects.toThrow(DeadlineExceededError);
    });

    it('while it runs and does not listen: its worker is replaced', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const abort = new AbortController();
      const { signal } = abort;
      const value = await cluster.schedule('hold', [visits.path, 'a'], { signal });
      const visit = await visits.next('a');
      const next = await cluster.schedule('where');
      abort.abort('enough');
      expect(await errorOf(value.fetch())).toBe('enough');
      await visit.left;
      expect(await next.fetch()).toMatchObject({ workerIndex: 0, attempt: 1 });
      expect(cluster.workers[0]?.restarts).toBe(1);
      await cluster.join();
    });

    it('that is over already: nothing is scheduled', async () => {
      const cluster = start();
      const signal = AbortSignal.abort('before');
      expect(await errorOf(cluster.schedule('add', [1, 2], { signal }))).toBe('before');
      expect(await cluster.done()).toBe(true);
    });

    it('before any worker has come: it is not waited for', async () => {
      const cluster = start();
      const abort = new AbortController();
      const { signal } = abort;
      const scheduled = errorOf(cluster.schedule('hold', [visits.path, 'a'], { signal }));
      const late = errorOf(cluster.schedule('hold', [visits.path, 'b'], { timeoutMs: 0 }));
      abort.abort('enough');
      expect(await scheduled).toBe('enough');
      expect(await late).toBeInstanceOf(DeadlineExceededError);
      expect(cluster.workers[0]?.state).toBe('starting');
      await cluster.join();
      expect(visits.names).toEqual([]);
    });

    it('leaves nothing behind at a signal that is used for many', async () => {
      const cluster = start();
      const { signal } = new AbortController();
      const warnings: Error[] = [];
      const onWarning = (warning: Error): void => void warnings.push(warning);
      process.on('warning', onWarning);
      for (let count = 0; count < 50; count += 1) await cluster.schedule('nothing', [], { signal });
      await cluster.join();
      await turn();
      process.off('warning', onWarning);
      expect(warnings).toEqual([]);
    });
  });

  describe('a full line', () => {
    it('lets schedule wait, until there is room', async () => {
      const cluster = start(1, { maxQueued: 2 });
      const { visit } = await running(cluster, 'a');
      for (const name of ['b', 'c']) await cluster.schedule('hold', [visits.path, name]);
      const waiting = cluster.schedule('hold', [visits.path, 'd']);
      expect(await isPending(waiting)).toBe(true);
      visit.pass();
      await waiting;
      for (const name of ['b', 'c', 'd']) (await visits.next(name)).pass();
      await cluster.join();
    });

    it('does not deadlock when all workers die together', async () => {
      const cluster = start(2, { maxQueued: 1 });
      const dying = [];
      for (const name of ['a', 'b']) {
        dying.push(await cluster.schedule('dieUntil', [2, visits.path, name]));
      }
      const both = [await visits.next('a'), await visits.next('b')];
      const queued = await cluster.schedule('echo', ['queued']);
      const blocked = cluster.schedule('echo', ['blocked']);
      for (const visit of both) visit.pass();
      expect(await cluster.fetch([...dying, queued, await blocked])).toEqual([
        2,
        2,
        'queued',
        'blocked',
      ]);
      await cluster.join();
    });

    it('an empty line does not starve the event loop', async () => {
      const cluster = start();
      await cluster.ready();
      const loop = { hasTurned: false };
      setImmediate(() => {
        loop.hasTurned = true;
      });
      for (let count = 0; count < 200_000 && !loop.hasTurned; count += 1) {
        await cluster.schedule('echo', [count]);
      }
      expect(loop.hasTurned).toBe(true);
      await cluster.join();
    });
  });

  describe('per-worker data sets', () => {
    it.each([
      ['numbers', tasks.numbers],
      ['numbersLater', tasks.numbersLater],
      ['numbersAtOnce', tasks.numbersAtOnce],
    ])('of %s', async (name, itself) => {
      const cluster = start();
      for (const fn of [name, itself] as const) {
        const iterator = cluster.createPerWorkerDataset<number>(fn, [3, 5]).iterator();
        const seen = [];
        for (let count = 0; count < 3; count += 1) {
          seen.push(await (await cluster.schedule('next', [iterator])).fetch());
        }
        expect(seen.map(({ value, done }) => [value, done])).toEqual([
          [3, false],
          [4, false],
          [undefined, true],
        ]);
      }
    });

    it('each worker has its own', async () => {
      const cluster = start(2);
      const iterator = cluster.createPerWorkerDataset(tasks.own).iterator();
      const values = [];
      for (const name of ['a', 'b']) {
        values.push(await cluster.schedule('holdAndNext', [visits.path, name, iterator]));
      }
      // Both run at once, so they run in different workers.
      for (const visit of [await visits.next('a'), await visits.next('b')]) visit.pass();
      const owners = (await cluster.fetch(values)) as string[];
      expect(owners.map((owner) => owner.slice(0, 4)).toSorted()).toEqual(['0 in', '1 in']);
    });

    it('each iterator begins at the beginning', async () => {
      const cluster = start();
      const dataset = cluster.createPerWorkerDataset('numbersAtOnce', [0, 9]);
      const [first, second] = [dataset.iterator(), dataset.iterator()];
      const both = async (): Promise<unknown> =>
        (await cluster.schedule('nextOfBoth', [first, second])).fetch();
      expect(await both()).toEqual([0, 0]);
      await (await cluster.schedule('next', [first])).fetch();
      expect(await both()).toEqual([2, 1]);
    });

    it('is made again for a new worker, before that takes work', async () => {
      const cluster = start();
      const iterator = cluster.createPerWorkerDataset('numbers', [0, 9]).iterator();
      const next = async (): Promise<number> =>
        (await (await cluster.schedule('next', [iterator])).fetch()).value;
      expect([await next(), await next()]).toEqual([0, 1]);
      expect(await (await cluster.schedule('dieUntil', [2])).fetch()).toBe(2);
      expect([await next(), await next()]).toEqual([0, 1]);
    });

    it.each([
      ['its function throws', 'broken', 'RangeError', 'no data'],
      ['it is not iterable', 'noDataset', 'TypeError', 'not iterable'],
    ])('when %s, those who use it fail with that', async (_what, name, cause, message) => {
      const cluster = start();
      const iterator = cluster.createPerWorkerDataset(name).iterator();
      await cluster.join(); // nobody has used it
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
      const value = await cluster.schedule('next', [iterator]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(ClosureInputError);
      expect(error.code).toBe('ERR_ALLSTOP_CLOSURE_INPUT');
      expect(error.cause.name).toBe(cause);
      expect(error.cause.message).toContain(message);
      expect(await errorOf(cluster.join())).toBe(error);
    });

    it('a function that the module does not have is an error of those who use it', async () => {
      const cluster = start();
      for (const fn of ['subtract', () => [1]]) {
        const iterator = cluster.createPerWorkerDataset(fn as () => number[]).iterator();
        const value = await cluster.schedule('next', [iterator]);
        const error = await errorOf(value.fetch());
        expect(error).toBeInstanceOf(ClosureInputError);
        expect(error.cause).toBeInstanceOf(TypeError);
        expect(error.cause.message).toMatch(/pass the name/);
        await expect(cluster.join()).rejects.toThrow(ClosureInputError);
      }
    });

    it('an error that comes while it is iterated is the function’s own', async () => {
      const cluster = start();
      const iterator = cluster.createPerWorkerDataset('brokenLater').iterator();
      const first = await cluster.schedule('next', [iterator]);
      expect(await first.fetch()).toMatchObject({ value: 'first' });
      const second = await cluster.schedule('next', [iterator]);
      expect(await errorOf(second.fetch())).toBeInstanceOf(RangeError);
    });

    it('is of its cluster, and an argument itself', async () => {
      const [cluster, other] = [start(), start()];
      const dataset = cluster.createPerWorkerDataset('numbers', [0, 9]);
      const iterator = dataset.iterator();
      await expect(other.schedule('next', [iterator])).rejects.toThrow(InvalidArgumentError);
      await expect(cluster.schedule('echo', [{ iterator }])).rejects.toThrow(InvalidArgumentError);
      expect(() => cluster.createPerWorkerDataset('numbers', [iterator])).toThrow(
        InvalidArgumentError,
      );
    });
  });

  describe('a worker that dies', () => {
    it('its function is run again, before all others', async () => {
      const cluster = start();
      const value = await cluster.schedule('dieUntil', [3, visits.path, 'dying']);
      const first = await visits.next('dying');
      await cluster.schedule('hold', [visits.path, 'other']);
      first.pass();
      (await visits.next('dying')).pass();
      expect(await value.fetch()).toBe(3);
      (await visits.next('other')).pass();
      await cluster.join();
      expect(visits.names).toEqual(['dying', 'dying', 'other']);
      expect(cluster.workers[0]?.restarts).toBe(2);
    });

    it('after so many retries it fails, because of the last death', async () => {
      const cluster = start(1, { retries: 1 });
      const value = await cluster.schedule('dieUntil', [9]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.code).toBe('ERR_ALLSTOP_UNAVAILABLE');
      expect(error.message).toContain("'dieUntil' was started 2 times");
      expect(error.cause.message).toContain('exited with code 7');
      expect(await errorOf(cluster.join())).toBe(error);
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });

    it('what only waited keeps its number of attempts', async () => {
      const cluster = start(1, { retries: 1 });
      const dying = await cluster.schedule('dieUntil', [2, visits.path, 'dying']);
      const visit = await visits.next('dying');
      const waiting = await cluster.schedule('where');
      visit.pass();
      expect(await dying.fetch()).toBe(2);
      expect(await waiting.fetch()).toMatchObject({ attempt: 1 });
    });

    it('that works in between may die as often as it likes', async () => {
      const cluster = start();
      for (let count = 0; count < 12; count += 1) {
        expect(await (await cluster.schedule('dieUntil', [2])).fetch()).toBe(2);
      }
      expect(cluster.workers[0]?.restarts).toBe(12);
    });
  });

  describe('memory', () => {
    it('is moved when that is asked for: there and back', async () => {
      const cluster = start();
      const bytes = new Uint8Array(8);
      const value = await cluster.schedule('fill', [transfer(bytes, [bytes.buffer]), 7]);
      expect(bytes.byteLength).toBe(0);
      expect(await value.fetch()).toEqual(new Uint8Array(8).fill(7));
      const kept = new Uint8Array(8);
      expect(await (await cluster.schedule('lengthOf', [kept])).fetch()).toBe(8);
      expect(kept.byteLength).toBe(8);
    });

    it('many results that are moved', async () => {
      const cluster = start(2);
      const values = [];
      for (let count = 0; count < 300; count += 1) {
        values.push(await cluster.schedule('fill', [new Uint8Array(4), count % 256]));
      }
      const all = (await cluster.fetch(values)) as Uint8Array[];
      expect(all.every((bytes, at) => bytes.length === 4 && bytes[0] === at % 256)).toBe(true);
    });

    it('that is shared arrives as it is in threads, and never in processes', async () => {
      const cluster = start(2);
      const memory = new SharedArrayBuffer(4);
      if (isolation === 'process') {
        const value = await cluster.schedule('increment', [memory]);
        const error = await errorOf(value.fetch());
        expect(error).toMatchObject({ name: 'DataCloneError' });
        expect(await errorOf(cluster.join())).toBe(error);
        expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
        return;
      }
      for (let count = 0; count < 20; count += 1) {
        await cluster.schedule('increment', [memory]);
      }
      await cluster.join();
      expect(new Int32Array(memory)[0]).toBe(20);
    });

    it('that was moved to a worker that died is lost in threads, and says so', async () => {
      const cluster = start(1, { retries: 2 });
      const bytes = new Uint8Array(8);
      const value = await cluster.schedule('dieWith', [transfer(bytes, [bytes.buffer])]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toContain(
        isolation === 'thread' ? 'were moved to a worker that is lost' : 'was started 3 times',
      );
      await expect(cluster.join()).rejects.toBe(error);
    });
  });

  describe('currentTask', () => {
    it('says which worker, and which attempt', async () => {
      const cluster = start();
      const place = await (await cluster.schedule('where')).fetch();
      expect(place).toMatchObject({ workerIndex: 0, attempt: 1 });
      expect(place.pid === process.pid).toBe(isolation === 'thread');
      expect(place.threadId > 0).toBe(isolation === 'thread');
      expect(cluster.workers).toMatchObject([{ job: 'worker', task: 0, pid: place.pid }]);
    });

    it('is the same after an await', async () => {
      expect(await (await start().schedule('afterAwait')).fetch()).toBe(true);
    });

    it('is an error outside', () => {
      expect(() => currentTask()).toThrow(FailedPreconditionError);
      expect(() => tasks.where()).toThrow(FailedPreconditionError);
    });
  });

  describe('a stop', () => {
    it.each([
      ['a plain one', undefined],
      ['one with an error', 'enough'],
    ])('%s of a function stops everything, and names the worker', async (_what, message) => {
      const cluster = start(2);
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const stopping = await cluster.schedule('stop', [message]);
      expect(await cluster.coordinator.waitForStop()).toBe(true);
      expect(await visit.told()).toMatch(
        message === undefined ? /^AbortError/ : 'RangeError: enough',
      );
      await errorOf(value.fetch());
      expect(value.state).toBe('cancelled');
      await Promise.allSettled([stopping.fetch()]);
      const { stopRecord } = cluster.coordinator;
      expect(stopRecord?.kind).toBe(message === undefined ? 'plain' : 'error');
      expect(stopRecord?.requester.worker).toMatch(/^worker:[01]$/);
      if (message !== undefined) {
        expect(stopRecord?.error).toBeInstanceOf(RangeError);
        await expect(cluster.coordinator.join()).rejects.toThrow('enough');
      }
    });

    it('of the program cancels what is in line, because of the error, and aborts what runs', async () => {
      const cluster = start();
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const queued = await cluster.schedule('hold', [visits.path, 'queued']);
      const joined = cluster.join();
      const stop = new RangeError('enough');
      cluster.coordinator.requestStop(stop);
      const error = await errorOf(queued.fetch());
      expect(error).toBeInstanceOf(CancelledError);
      expect(error.cause).toBe(stop);
      expect(queued.state).toBe('cancelled');
      expect(await visit.told()).toBe('RangeError: enough');
      await errorOf(value.fetch());
      const calls = [joined, cluster.join(), cluster.done(), cluster.schedule('nothing')];
      for (const refused of await Promise.all(calls.map(errorOf))) {
        expect(refused).toBeInstanceOf(CancelledError);
        expect(refused.cause).toBe(stop);
      }
      expect(visits.names).toEqual(['a']);
    });

    it('lets schedule calls that wait for room go', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('nothing');
      const blocked = cluster.schedule('nothing');
      cluster.coordinator.requestStop();
      await expect(blocked).rejects.toThrow(CancelledError);
      visit.pass();
    });

    it('cannot be taken back', async () => {
      const cluster = start();
      await expect((await cluster.schedule('clear')).fetch()).rejects.toThrow(
        FailedPreconditionError,
      );
      cluster.coordinator.requestStop();
      expect(() => cluster.coordinator.clearStop()).toThrow(FailedPreconditionError);
      expect(cluster.coordinator.shouldStop()).toBe(true);
    });
  });

  describe('ready', () => {
    it('resolves when all workers can take work, and reports on the way', async () => {
      const cluster = start(2);
      cluster.createPerWorkerDataset('numbers', [0, 9]);
      const reports: ReadinessReport[] = [];
      await cluster.ready({ onProgress: (report) => reports.push(report) });
      expect(reports[0]?.ready).toBe(false);
      expect(reports.at(-1)).toMatchObject({
        ready: true,
        engine: { phase: 'ready' },
        tasks: [0, 1].map((task) => ({ job: 'worker', task, ready: true, phase: 'ready' })),
      });
      expect(cluster.workers.map(({ state }) => state)).toEqual(['idle', 'idle']);
    });

    it('waits for data sets that come when the workers are there', async () => {
      const cluster = start(2);
      await cluster.ready();
      for (const fn of ['numbers', tasks.numbers] as const) {
        const dataset = cluster.createPerWorkerDataset<number>(fn, [0, 9]);
        await cluster.ready();
        expect(cluster.workers.map(({ state }) => state)).toEqual(['idle', 'idle']);
        dataset.iterator();
      }
    });

    it('says at the deadline who blocks', async () => {
      const cluster = start(2);
      const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
      expect(error).toBeInstanceOf(ClusterNotReadyError);
      expect(error.code).toBe('ERR_ALLSTOP_CLUSTER_NOT_READY');
      expect(error.message).toContain('worker:0 starting, worker:1 starting');
      expect(error.report).toMatchObject({
        ready: false,
        tasks: [0, 1].map((task) => ({ job: 'worker', task, ready: false, phase: 'starting' })),
      });
      expect(error.report.tasks[0].since).toBeInstanceOf(Date);
      await cluster.ready();
    });

    it('ends with its signal', async () => {
      const cluster = start();
      const abort = new AbortController();
      const ready = cluster.ready({ signal: abort.signal });
      abort.abort('enough');
      expect(await errorOf(ready)).toBe('enough');
      expect(await errorOf(cluster.ready({ signal: abort.signal }))).toBe('enough');
    });

    it('an error of onProgress is its caller’s, and nobody else’s', async () => {
      const cluster = start();
      let calls = 0;
      const onProgress = (): void => {
        calls += 1;
        if (calls === 2) throw new RangeError('progress');
      };
      await expect(cluster.ready({ onProgress })).rejects.toThrow('progress');
      await cluster.ready();
      expect(calls).toBe(2);
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });

    it.each(['broken-tasks.mjs', 'no-such-tasks.mjs'])(
      'says at once why %s fails',
      async (name) => {
        const url = new URL(`../fixtures/${name}`, import.meta.url);
        const strategy = new LocalStrategy({ module: url, workers: 2, isolation });
        const cluster = new ClusterCoordinator(strategy);
        clusters.push(cluster);
        const scheduled = errorOf(cluster.schedule('add', [1, 2]));
        const error = await errorOf(cluster.ready());
        expect(error).toBeInstanceOf(ClusterNotReadyError);
        const message = name === 'broken-tasks.mjs' ? 'this module is broken' : 'no-such-tasks.mjs';
        expect(error.message).toContain(message);
        expect(error.cause.message).toContain(message);
        const phases = error.report.tasks.map(({ phase }: { phase: string }) => phase);
        expect(phases).toContain('import-failed');
        const calls = [cluster.schedule('add'), cluster.join(), cluster.done()];
        for (const refused of [await scheduled, ...(await Promise.all(calls.map(errorOf)))]) {
          expect(refused).toBeInstanceOf(UnavailableError);
          expect(refused.message).toContain(message);
        }
        await expect(cluster.ready()).rejects.toThrow(ClusterNotReadyError);
      },
    );
  });

  describe('a program', () => {
    const run = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
      promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 30_000 });

    it('that waits for nothing ends, quietly, though its workers are only starting', async () => {
      expect(await run(program, isolation)).toEqual({ stdout: '', stderr: '' });
    });

    it('that waits for a value is kept alive until it is there, and no longer', async () => {
      expect(await run(program, isolation, 'add')).toEqual({ stdout: '3\n', stderr: '' });
    });

    it.each([
      [[]],
      [['--input-type=module']],
      [['--input-type', 'module', '--expose-gc', '--stack-trace-limit=5', '--no-warnings']],
    ])('that Node has as text is not run again by its workers: %j', async (options) => {
      // Were it, they would start workers, too: so that it runs once only is seen to here.
      const code = `
        if (process.env.ALLSTOP_TEST_RUNS) process.exit(9);
        process.env.ALLSTOP_TEST_RUNS = '1';
        process.argv.push('${isolation}', 'add');
        import('${pathToFileURL(program).href}');
      `;
      expect(await run(...options, '-e', code)).toEqual({ stdout: '3\n', stderr: '' });
    });
  });

  describe('close', () => {
    it('settles every handle', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const queued = await cluster.schedule('hold', [visits.path, 'queued']);
      const blocked = cluster.schedule('nothing');
      const joined = cluster.join();
      const closing = cluster.close();
      await expect(blocked).rejects.toThrow(FailedPreconditionError);
      expect(await visit.told()).toBe('CancelledError: The cluster was closed');
      await expect(joined).rejects.toThrow(FailedPreconditionError);
      await closing;
      for (const each of [value, queued]) {
        await expect(each.fetch()).rejects.toThrow(CancelledError);
      }
      expect([value.state, queued.state]).toEqual(['cancelled', 'cancelled']);
      expect(cluster.workers.map(({ state }) => state)).toEqual(['lost']);
      expect(cluster.coordinator.shouldStop()).toBe(true);
    });

    it('ends what does not listen after the grace period', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const { value, visit } = await running(cluster, 'a');
      await cluster.close();
      await visit.left;
      await expect(value.fetch()).rejects.toThrow(CancelledError);
      expect(value.state).toBe('cancelled');
    });

    it('twice is harmless, and values that are there stay', async () => {
      const cluster = start();
      const value = await cluster.schedule('add', [1, 2]);
      await cluster.join();
      await Promise.all([cluster.close(), cluster.close()]);
      await cluster[Symbol.asyncDispose]();
      expect(await value.fetch()).toBe(3);
      expect(await cluster.fetch([value])).toEqual([3]);
    });

    it('at once, before any worker is there', async () => {
      const cluster = start(2);
      const scheduled = errorOf(cluster.schedule('add', [1, 2]));
      await cluster.close();
      expect(await scheduled).toBeInstanceOf(FailedPreconditionError);
    });

    it('refuses what comes later', async () => {
      const cluster = start();
      await cluster.ready();
      await cluster.close();
      const calls = [
        cluster.schedule('add', [1, 2]),
        cluster.schedule(tasks.add, [1, 2]),
        cluster.join(),
        cluster.done(),
      ];
      for (const error of await Promise.all(calls.map(errorOf))) {
        expect(error).toBeInstanceOf(FailedPreconditionError);
      }
      await expect(cluster.ready()).rejects.toThrow(ClusterNotReadyError);
    });

    it('tells ready() that waits', async () => {
      const cluster = start();
      const ready = cluster.ready();
      const closing = cluster.close();
      await expect(ready).rejects.toThrow(/is closed/);
      await closing;
    });
  });
});

describe('bad input', () => {
  const strategy = (): LocalStrategy => new LocalStrategy({ module, workers: 1 });
  let cluster: ClusterCoordinator;

  beforeEach(() => {
    cluster = new ClusterCoordinator(strategy());
    clusters.push(cluster);
  });

  const type = 'ERR_INVALID_ARG_TYPE';
  const range = 'ERR_OUT_OF_RANGE';

  it.each<[string, () => unknown, string]>([
    ['no options', () => new (LocalStrategy as any)(), type],
    ['no module', () => new LocalStrategy({} as any), type],
    ['a path', () => new LocalStrategy({ module: '/tasks.mjs' as any }), type],
    ['workers as text', () => new LocalStrategy({ module, workers: '1' as any }), type],
    ['no workers', () => new LocalStrategy({ module, workers: 0 }), range],
    ['a part of a worker', () => new LocalStrategy({ module, workers: 1.5 }), range],
    ['too many workers', () => new LocalStrategy({ module, workers: 1e6 }), range],
    ['NaN workers', () => new LocalStrategy({ module, workers: Number.NaN }), range],
    ['an unknown isolation', () => new LocalStrategy({ module, isolation: 'vm' as any }), type],
    ['no strategy', () => new (ClusterCoordinator as any)(), type],
    ['another strategy', () => new ClusterCoordinator({} as any), type],
    ['options', () => new ClusterCoordinator(strategy(), 1 as any), type],
    [
      'maxQueued as text',
      () => new ClusterCoordinator(strategy(), { maxQueued: '1' as any }),
      type,
    ],
    ['maxQueued 0', () => new ClusterCoordinator(strategy(), { maxQueued: 0 }), range],
    ['maxQueued NaN', () => new ClusterCoordinator(strategy(), { maxQueued: Number.NaN }), range],
    ['retries as text', () => new ClusterCoordinator(strategy(), { retries: '1' as any }), type],
    ['retries -1', () => new ClusterCoordinator(strategy(), { retries: -1 }), range],
    ['retries 1.5', () => new ClusterCoordinator(strategy(), { retries: 1.5 }), range],
    ['a grace -1', () => new ClusterCoordinator(strategy(), { cancelGraceMs: -1 }), range],
    ['a grace NaN', () => new ClusterCoordinator(strategy(), { cancelGraceMs: Number.NaN }), range],
    ['transfer of nothing', () => transfer(1 as any, []), type],
    ['transfer without a list', () => transfer({}, {} as any), type],
    ['a data set of nothing', () => cluster.createPerWorkerDataset(1 as any), type],
    ['arguments of a data set', () => cluster.createPerWorkerDataset('numbers', 1 as any), type],
  ])('%s is refused at once', (_what, call, code) => {
    let error: any;
    try {
      call();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(code === type ? TypeError : RangeError);
    expect(error.code).toBe(code);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['no function', () => (cluster.schedule as any)(), type],
    ['a number as a function', () => cluster.schedule(1 as any), type],
    ['arguments that are no array', () => cluster.schedule('add', 1 as any), type],
    ['arguments that are null', () => cluster.schedule('add', null as any), type],
    ['options', () => cluster.schedule('add', [1, 2], 1 as any), type],
    ['timeoutMs', () => cluster.schedule('add', [1, 2], { timeoutMs: '1' as any }), type],
    ['timeoutMs -1', () => cluster.schedule('add', [1, 2], { timeoutMs: -1 }), range],
    ['timeoutMs NaN', () => cluster.schedule('add', [1, 2], { timeoutMs: Number.NaN }), range],
    ['a signal', () => cluster.schedule('add', [1, 2], { signal: {} as any }), type],
    ['options of ready', () => cluster.ready(1 as any), type],
    ['timeoutMs of ready', () => cluster.ready({ timeoutMs: -1 }), range],
    ['the signal of ready', () => cluster.ready({ signal: 1 as any }), type],
    ['onProgress', () => cluster.ready({ onProgress: 1 as any }), type],
    ['options of fetch', async () => (await cluster.schedule('add', [1, 2])).fetch(1 as any), type],
    [
      'timeoutMs of fetch',
      async () => (await cluster.schedule('add', [1, 2])).fetch({ timeoutMs: -1 }),
      range,
    ],
  ])('%s is a rejection', async (_what, call, code) => {
    const error = await errorOf(call());
    expect(error).toBeInstanceOf(code === type ? TypeError : RangeError);
    expect(error.code).toBe(code);
    await cluster.join();
  });

  it('an empty options object is none, and undefined is left out', async () => {
    await cluster.schedule('add', [1, 2], {});
    await cluster.schedule('add', [1, 2], { timeoutMs: undefined, signal: undefined });
    await cluster.schedule('nothing', undefined, undefined);
    await cluster.ready({ timeoutMs: undefined });
    await cluster.join();
  });
});
