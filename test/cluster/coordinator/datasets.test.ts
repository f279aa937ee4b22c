/** Data sets that each worker makes for itself. */

import {
  CancelledError,
  ClosureInputError,
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

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

    it('gets memory as it is, and not that of a message with it', async () => {
      const cluster = start();
      const bytes = new Uint8Array([1, 2, 3, 4]);
      const iterator = cluster.createPerWorkerDataset<number[]>('sizes', [bytes]).iterator();
      const { value } = await (await cluster.schedule('next', [iterator])).fetch();
      expect(value).toEqual([4, 4]);
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

    it('are no start of a worker, where one was ready before', async () => {
      const cluster = start();
      let started = 0;
      cluster.on('workerStarted', () => (started += 1));
      await cluster.ready();
      const iterator = cluster.createPerWorkerDataset('numbersAtOnce', [0, 9]).iterator();
      await cluster.run('next', [iterator]);
      expect(started).toBe(1);
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

    it('ready() waits until it is made', async () => {
      const cluster = start(1);
      await cluster.ready();
      cluster.createPerWorkerDataset('hold', [visits.path, 'a']);
      const phases: string[] = [];
      const ready = cluster.ready({
        onProgress: ({ tasks: [task] }) => phases.push(task?.phase ?? 'none'),
      });
      const visit = await visits.next('a');
      expect(await isPending(ready)).toBe(true);
      expect(phases).toContain('building-dataset');
      visit.pass();
      await ready;
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
      await cluster.join(); // no function has used it
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
      const value = await cluster.schedule('next', [iterator]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(ClosureInputError);
      expect(error.code).toBe('ERR_ALLSTOP_CLOSURE_INPUT');
      expect(error.cause.name).toBe(cause);
      expect(error.cause.message).toContain(message);
      expect(await errorOf(cluster.join())).toBe(error);
    });

    it('when its function ends the workers, those who use it fail, and the others run', async () => {
      const cluster = start(2);
      const good = cluster.createPerWorkerDataset('numbersAtOnce', [4, 9]).iterator();
      const bad = cluster.createPerWorkerDataset('deadlyAtOnce').iterator();
      const failed = errorOf(cluster.run('next', [bad]));
      expect(await cluster.run('add', [1, 2])).toBe(3);
      const error = await failed;
      expect(error).toBeInstanceOf(ClosureInputError);
      expect(error.cause).toBeInstanceOf(UnavailableError);
      expect(error.cause.message).toMatch(
        /^The data set function 'deadlyAtOnce' lost its worker 4 times \(retries: 3\)\. Last: .* exited with code 7$/,
      );
      expect(error.cause.cause).toMatchObject({ exitCode: 7 });
      expect(await cluster.run('next', [good])).toMatchObject({ value: 4 });
      await cluster.ready();
    });

    it('when its function ends the worker, it is made as often as `retries` says', async () => {
      const cluster = start(1, { retries: 1 });
      const bad = cluster.createPerWorkerDataset('deadly', [visits.path, 'bad']).iterator();
      const failed = errorOf(cluster.run('next', [bad]));
      for (let count = 0; count < 2; count += 1) (await visits.next('bad')).pass();
      expect(await failed).toBeInstanceOf(ClosureInputError);
      // The next worker does not make it again.
      expect(await cluster.run('dieUntil', [2])).toBe(2);
      expect(await errorOf(cluster.run('next', [bad]))).toBeInstanceOf(ClosureInputError);
      expect(visits.names).toEqual(['bad', 'bad']);
    });

    it('is not blamed for the death that another has caused', async () => {
      const cluster = start(1, { retries: 0 });
      const good = cluster.createPerWorkerDataset('hold', [visits.path, 'good']).iterator();
      const bad = cluster.createPerWorkerDataset('deadly', [visits.path, 'bad']).iterator();
      const both = [errorOf(cluster.run('next', [bad])), cluster.run('next', [good])];
      // Both are made when the worker dies: nobody knows of which. The next makes one at a time.
      await visits.next('good');
      (await visits.next('bad')).pass();
      (await visits.next('good')).pass('xy');
      (await visits.next('bad')).pass();
      (await visits.next('good')).pass('xy');
      const [error, drawn] = await Promise.all(both);
      expect(error.cause.message).toContain("'deadly' lost its worker once (retries: 0)");
      expect(drawn).toMatchObject({ value: 'x' });
      expect(visits.names).toEqual(['good', 'bad', 'good', 'bad', 'good']);
    });

    it.skipIf(kind.isRemote)(
      'the deadline of a call that waits for it names its function',
      async () => {
        const cluster = start(1);
        await cluster.ready();
        const held = cluster.createPerWorkerDataset('hold', [visits.path, 'held']).iterator();
        const error = await errorOf(cluster.run('next', [held], { timeoutMs: 50 }));
        expect(error.message).toContain(
          "worker:0 is not ready (building-dataset): the data set function 'hold' has not ended. What to do: see why",
        );
        (await visits.next('held')).pass('xy');
        expect(await cluster.run('next', [held])).toMatchObject({ value: 'x' });
      },
    );

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

    it('is refused, as a call is, when the cluster is over', async () => {
      const refusalOf = (define: () => unknown): unknown => {
        try {
          return define();
        } catch (error) {
          return error;
        }
      };
      for (const end of ['close', 'stop'] as const) {
        const cluster = start();
        const dataset = cluster.createPerWorkerDataset('numbers', [0, 9]);
        if (end === 'close') await cluster.close();
        else cluster.coordinator.requestStop();
        const refused = await errorOf(cluster.run('add', [1, 2]));
        const Class = end === 'close' ? FailedPreconditionError : CancelledError;
        expect(refused).toBeInstanceOf(Class);
        expect(refusalOf(() => dataset.iterator())).toBe(refused);
        expect(refusalOf(() => cluster.createPerWorkerDataset('numbers', [0, 9]))).toBe(refused);
      }
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
});
