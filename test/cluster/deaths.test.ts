/** Workers that die. */

import { UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { errorOf, kinds, useClusters } from '../support/clusters.ts';

describe.each(kinds)('workers as $name', (kind) => {
  const { start, visits } = useClusters(kind);

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
});
