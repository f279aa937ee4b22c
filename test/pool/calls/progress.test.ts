/** `currentCall().report`, `remote.progress` and `onProgress`: how far a function is. */

import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

  async function all(values: AsyncIterable<unknown>): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const value of values) found.push(value);
    return found;
  }

  describe('progress', () => {
    it('comes while the function runs, and ends with it', async () => {
      const cluster = start(1);
      const remote = await cluster.schedule('reportAndHold', [
        ['half', { of: 2 }],
        visits.path,
        'a',
      ]);
      const visit = await visits.next('a');
      const reader = remote.progress[Symbol.asyncIterator]();
      expect((await reader.next()).value).toBe('half');
      expect((await reader.next()).value).toEqual({ of: 2 });
      const last = reader.next();
      const other = all(remote.progress);
      visit.pass('fine');
      expect((await last).done).toBe(true);
      expect(await other).toEqual(['half', { of: 2 }]);
      expect(await remote.fetch()).toBe('fine');
      expect(await all(remote.progress)).toEqual(['half', { of: 2 }]); // also for one who is late
    });

    it('is given to onProgress, by run, schedule and map', async () => {
      const cluster = start(1);
      const seen: unknown[] = [];
      const onProgress = (value: unknown, item?: unknown): void => {
        seen.push(item === undefined ? value : [value, item]);
      };
      await cluster.run('reportAll', [[1, 2]], { onProgress });
      await (await cluster.schedule('reportAll', [[3]], { onProgress })).fetch();
      for await (const _ of cluster.map('reportAll', [[4]], { onProgress }));
      expect(seen).toEqual([1, 2, 3, [4, [4]]]);
    });

    const broken = new RangeError('broken');
    it.each([
      [
        'throws',
        () => {
          throw broken;
        },
      ],
      ['rejects', async () => Promise.reject(broken)],
    ])('whose onProgress %s cancels the function', async (_, onProgress) => {
      const cluster = start(1);
      const own = cluster.run('reportUntilAborted', [], { onProgress });
      expect(await errorOf(own)).toBe(broken);
      expect(await cluster.run('add', [1, 2])).toBe(3);
      const wrong = errorOf(cluster.run('add', [1, 2], { onProgress: 1 as never }));
      expect(await wrong).toBeInstanceOf(TypeError);
    });

    it('that nobody reads is bounded: the newest values are kept', async () => {
      const cluster = start(1);
      const remote = await cluster.schedule('reportMany', [100_000]);
      await remote.fetch();
      const values = (await all(remote.progress)) as number[];
      expect(values.length).toBeLessThanOrEqual(4_096);
      expect(values.at(-1)).toBe(99_999);
      expect(values).toEqual(values.toSorted((one, other) => one - other));
      const large = await cluster.schedule('reportLarge', [50, 100_000]);
      await large.fetch();
      expect((await all(large.progress)).length).toBeLessThanOrEqual(10);
    });

    it('goes on with the next attempt', async () => {
      const cluster = start(1);
      const remote = await cluster.schedule('reportAndDieOnce', [visits.path, 'first']);
      const reader = remote.progress[Symbol.asyncIterator]();
      const visit = await visits.next('first');
      expect((await reader.next()).value).toBe('attempt 1');
      visit.pass();
      expect((await reader.next()).value).toBe('attempt 2');
      expect((await reader.next()).done).toBe(true);
    });

    it('of a function that has failed ends; its error is that of fetch', async () => {
      const cluster = start(1);
      const remote = await cluster.schedule('reportAndFail', ['so far']);
      expect(await all(remote.progress)).toEqual(['so far']);
      await expect(remote.fetch()).rejects.toThrow('too far');
      await expect(cluster.join()).rejects.toThrow('too far');
      const odd = cluster.run('reportAll', [[1]]);
      expect(await odd).toBe(undefined);
      const unclonable = errorOf(cluster.run('reportFunction'));
      expect(await unclonable).toMatchObject({
        name: 'DataCloneError',
        message: expect.stringContaining('value.f'),
      });
    });
  });
});
