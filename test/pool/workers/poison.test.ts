/** Functions that kill their workers harm nobody else. */

import { once } from 'node:events';
import { ClusterCoordinator, LocalStrategy, UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, module, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

  describe('a function that kills its worker', () => {
    it('fails alone after `retries`, three by default, and says how', async () => {
      const cluster = start(2);
      const poison = errorOf(cluster.run('dieUntil', [99]));
      const harmless = Array.from({ length: 20 }, (_, n) => cluster.run('add', [n, 1]));
      expect(await Promise.all(harmless)).toEqual(harmless.map((_, n) => n + 1));
      const error = await poison;
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toMatch(
        /^'dieUntil' lost its worker 4 times in 4 attempts \(retries: 3\)\. Last: .*exited with code 7/,
      );
      await cluster.join();
      expect(cluster.stats()).toMatchObject({ completed: 20, failed: 1, retried: 3 });
    });

    it.runIf(kind.isThread)('may be one whose arguments have no room there', async () => {
      const resourceLimits = { maxOldGenerationSizeMb: 12 };
      const strategy = new LocalStrategy({ module, workers: 1, resourceLimits });
      await using cluster = new ClusterCoordinator(strategy, { retries: 0 });
      await cluster.ready();
      const list = Array.from({ length: 300_000 }, (_, n) => ({ n }));
      const large = { list, memory: new SharedArrayBuffer(8) };
      const poison = errorOf(cluster.run('both', [1, large]));
      const harmless = [1, 2, 3].map((n) => cluster.run('add', [n, 1]));
      expect((await poison).message).toMatch(/^'both' lost its worker once .* out of memory$/);
      expect(await Promise.all(harmless)).toEqual([2, 3, 4]);
    });

    it('also does so if a listener to the exit throws', async () => {
      const cluster = start();
      const lost = once(cluster, 'workerLost');
      const error = await errorOf(cluster.run('exitInVain'));
      expect(error.message).toBe('in vain');
      await lost;
      expect(await cluster.run('add', [1, 2])).toBe(3);
    });

    it.runIf(kind.hasThreads)('may be one that closes its thread’s parentPort', async () => {
      const cluster = start();
      const error = await errorOf(cluster.run('closePort', [], { retries: 1 }));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toMatch(/'closePort' lost its worker 2 times .*parentPort .* closed/);
      expect(await cluster.run('add', [1, 2])).toBe(3);
    });

    it.skipIf(kind.hasThreads)('may be one that disconnects its process', async () => {
      const cluster = start();
      const error = await errorOf(cluster.run('disconnect', [], { retries: 0 }));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toMatch(/'disconnect' lost its worker once .* exited with code 0/);
      expect(await cluster.run('add', [1, 2])).toBe(3);
    });

    it('is not one that removes the listeners of its worker', async () => {
      const cluster = start();
      for (const event of ['message', 'close', 'disconnect', 'removeListener', 'message']) {
        await cluster.run('removeListeners', [event]);
      }
      await cluster.run('removeEachListener');
      // The call behind reaches the worker in the same message, or in the same turn.
      const sum = Promise.all([cluster.run('removeListeners'), cluster.run('add', [1, 2])]);
      expect((await sum)[1]).toBe(3);
      expect(await cluster.run('where')).toMatchObject({ attempt: 1 });
      expect(cluster.stats()).toMatchObject({ retried: 0 });
    });

    // Over NATS a variable needs a parameter server.
    it.skipIf(kind.isRemote)('is not one that does so and awaits an answer', async () => {
      const cluster = start();
      await cluster.variable('n', 5);
      expect(await cluster.run('removeListenersAndRead', ['n'])).toBe(5);
    });

    it.runIf(kind.hasThreads)('is not a function that posts arrays of its own', async () => {
      const cluster = start();
      await cluster.run('postArrays');
      expect(await cluster.run('add', [1, 2])).toBe(3);
    });

    it('is run as often as its call says', async () => {
      const cluster = start();
      const never = await errorOf(cluster.run('dieUntil', [2], { retries: 0 }));
      expect(never.message).toMatch(/lost its worker once in 1 attempt \(retries: 0\)/);
      expect(await cluster.run('dieUntil', [6], { retries: 5 })).toBe(6);
    });

    it('does not make the pool give up, however often workers die', { tags: 'long' }, async () => {
      const cluster = start();
      for (let count = 0; count < 4; count += 1) {
        expect(await errorOf(cluster.run('dieUntil', [99]))).toBeInstanceOf(UnavailableError);
      }
      expect(await cluster.run('add', [1, 2])).toBe(3);
    });

    it('is alone when it runs again: nothing is sent after it', async () => {
      const cluster = start();
      const poison = cluster.run('dieUntil', [2, visits.path, 'dying']);
      const first = await visits.next('dying');
      const before = cluster.run('hold', [visits.path, 'before']);
      first.pass();
      const visit = await visits.next('before');
      const after = Array.from({ length: 5 }, () => cluster.run('where'));
      visit.pass();
      await before;
      expect(await poison).toBe(2);
      for (const each of await Promise.all(after)) expect(each).toMatchObject({ attempt: 1 });
      expect(cluster.stats()).toMatchObject({ retried: 1 });
    });
  });

  describe('events', () => {
    it('tell of workers that start and die, of retries, and of nothing left to do', async () => {
      const cluster = start();
      const told: unknown[] = [];
      cluster.on('workerStarted', ({ index, state }) => told.push(['started', index, state]));
      cluster.on('workerLost', ({ index }, error) => told.push(['lost', index, error.message]));
      cluster.on('retry', ({ name, attempt }) => told.push(['retry', name, attempt]));
      cluster.on('idle', () => told.push(['idle']));
      await cluster.ready();
      expect(await cluster.run('dieUntil', [2])).toBe(2);
      await cluster.join();
      const again = kind.isRemote ? [] : [['started', 0, expect.any(String)]];
      const lost = ['lost', 0, expect.stringContaining('exited with code 7')];
      const retry = ['retry', 'dieUntil', 2];
      expect(told).toHaveLength(4 + again.length);
      expect(told[0]).toMatchObject(['started', 0, expect.any(String)]);
      expect(told).toEqual(expect.arrayContaining([lost, retry, ...again]));
      expect(told.at(-1)).toEqual(['idle']);
    });

    it('tell of a worker that dies between functions, with its error', async () => {
      const cluster = start();
      const lost = new Promise<Error>((resolve) => {
        cluster.once('workerLost', (_, error) => resolve(error));
      });
      await cluster.run('answerAndDie');
      expect((await lost).message).toContain('exited with code 7');
    });

    it('are not needed: `workers` says what runs, and since when', async () => {
      const cluster = start();
      const began = Date.now();
      const value = cluster.run('hold', [visits.path, 'a']);
      const visit = await visits.next('a');
      const [task] = cluster.workers[0]?.calls ?? [];
      expect(task).toMatchObject({ name: 'hold', attempt: 1 });
      expect(task?.startedAt.getTime()).toBeGreaterThanOrEqual(began);
      visit.pass();
      await value;
      expect(cluster.workers[0]?.calls).toEqual([]);
    });
  });
});
