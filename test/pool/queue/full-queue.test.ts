/** `schedule` when the queue is full, and when it is empty. */

import { describe, expect, it } from 'vitest';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

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
});
