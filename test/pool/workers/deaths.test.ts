/** Workers that die. */

import { BlockList } from 'node:net';
import { hostname } from 'node:os';
import type { StopExplanation } from 'allstop';
import { UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

  describe('a worker that dies', () => {
    it('its function is run again, after what was in line', async () => {
      const cluster = start();
      const value = await cluster.schedule('dieUntil', [3, visits.path, 'dying']);
      const first = await visits.next('dying');
      await cluster.schedule('hold', [visits.path, 'other']);
      first.pass();
      (await visits.next('other')).pass();
      (await visits.next('dying')).pass();
      expect(await value.fetch()).toBe(3);
      await cluster.join();
      expect(visits.names).toEqual(['dying', 'other', 'dying']);
      expect(cluster.workers[0]?.restarts).toBe(2);
    });

    it('fails after its retries, because of the last death', async () => {
      const cluster = start(1, { retries: 1 });
      const value = await cluster.schedule('dieUntil', [9]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.code).toBe('ERR_ALLSTOP_UNAVAILABLE');
      expect(error.message).toMatch(
        /^'dieUntil' lost its worker 2 times in 2 attempts \(retries: 1\)\. Last: .*exited with code 7/,
      );
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

    it('what it has answered before counts, and is not run again', async () => {
      const cluster = start();
      expect(await (await cluster.schedule('answerAndDie')).fetch()).toBe(1);
      await cluster.join();
    });

    it('the short functions that have ended there before are not run again', async () => {
      const cluster = start();
      const calls = Array.from({ length: 300 }, (_, index) => cluster.run('oneDies', [index]));
      const attempts = await Promise.all(calls);
      expect(cluster.workers[0]?.restarts).toBe(1);
      expect(attempts).toEqual(Array.from({ length: 300 }, (_, index) => (index === 150 ? 2 : 1)));
    });

    it('that works in between may die as often as it likes', { tags: 'long' }, async () => {
      const cluster = start();
      for (let count = 0; count < 12; count += 1) {
        expect(await (await cluster.schedule('dieUntil', [2])).fetch()).toBe(2);
      }
      expect(cluster.workers[0]?.restarts).toBe(12);
    });
  });

  describe.runIf(kind.isThread)('what cannot be read', () => {
    it('of a worker: it is lost with it, and the function is run again', async () => {
      const cluster = start(1, { retries: 1 });
      const value = await cluster.schedule('blockList');
      tasks.refuseBlockList();
      expect(await value.fetch()).toEqual([expect.any(BlockList), 2]);
      expect(cluster.workers).toMatchObject([{ restarts: 1 }]);
    });

    it('of a worker: the function has ended, and what may not begin twice fails', async () => {
      const cluster = start(1, { retries: 0 });
      const value = await cluster.schedule('blockList');
      tasks.refuseBlockList();
      const error = await errorOf(value.fetch());
      expect(error).toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
      expect(await errorOf(cluster.join())).toBe(error);
    });

    it('of a worker, run again: its function fails, and the cluster works on, as often as need be', {
      tags: 'long',
    }, async () => {
      const cluster = start();
      for (let count = 1; count <= 12; count += 1) {
        const value = await cluster.schedule('nested', [5_000]);
        const error = await errorOf(value.fetch());
        expect(error).toBeInstanceOf(DOMException);
        expect(error).toMatchObject({
          name: 'DataCloneError',
        });
        expect(await errorOf(cluster.join())).toBe(error);
        expect(await (await cluster.schedule('add', [count, 1])).fetch()).toBe(count + 1);
        expect(cluster.workers).toMatchObject([{ restarts: count }]);
      }
    });

    it('of a worker: what is announced and can be read is a result', async () => {
      const cluster = start();
      const value = await cluster.schedule('blockList');
      tasks.refuseBlockList();
      expect(await value.fetch()).toEqual([expect.any(BlockList), 2]);
      tasks.refuseBlockList(); // a first attempt announces no result
      expect(await (await cluster.schedule('blockList')).fetch()).toEqual([
        expect.any(BlockList),
        2,
      ]);
    });

    it('by a worker: it has not been started, and comes to another', async () => {
      const cluster = start();
      await (await cluster.schedule('refuseBlockList')).fetch();
      const value = await cluster.schedule('attemptWith', [new BlockList()]);
      expect(await value.fetch()).toBe(1);
      expect(cluster.workers).toMatchObject([{ restarts: 1 }]);
    });
  });

  it('who it was is known until another has come, by its number and by its pid', async () => {
    const cluster = start();
    const place = await (await cluster.schedule('where')).fetch();
    const explain = (): StopExplanation => cluster.coordinator.explain();
    const process = `process ${place.pid}${kind.isRemote ? ` on ${hostname()}` : ''}`;
    const where = kind.isThread ? `thread ${place.threadId}` : process;
    expect(explain()).toMatchObject({ links: [], workers: [`worker:0 (${where})`] });
    expect(explain().toString()).toContain(`Workers (1):\n  - worker:0 (${where})`);
    await cluster.close();
    expect(cluster.workers).toMatchObject([{ state: 'lost', pid: place.pid }]);
    expect(explain().workers).toBeUndefined();
  });
});
