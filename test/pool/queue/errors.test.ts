/** The first error of any function. */

import { CancelledError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending, turn } from '../../support/gate.ts';

describeKinds(kinds, (kind) => {
  const { start, running, failed, visits } = useClusters(kind);

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
      expect(error.message).toBe(
        "'hold' was cancelled because 'hold' failed: RangeError: broken. Please reschedule it",
      );
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
      expect(await visit.told()).toMatch(
        /^CancelledError: Cancelled because the function '.+' failed: RangeError: broken$/,
      );
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
      expect(await isPending(Promise.race(blocked))).toBe(true); // until the function b has ended
      b.visit.pass();
      await expect(blocked[0]).rejects.toThrow('broken');
      const others = await Promise.all(blocked.slice(1));
      expect(await cluster.fetch(others)).toEqual([2, 3]);
      await cluster.join();
    });

    it('nobody has to look at: the program goes on', async () => {
      const cluster = start();
      await failed(cluster, 'broken'); // without an unhandled rejection
      await turn();
    });
  });
});
