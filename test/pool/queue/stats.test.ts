/** `stats()` of a cluster. */

import type { FunctionStats } from 'allstop/cluster';
import { expect, it } from 'vitest';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start, running, failed } = useClusters(kind);

  it('what waits, what runs, and what has become of the rest', async () => {
    const cluster = start();
    await (await cluster.schedule('add', [1, 2])).fetch();
    await (await cluster.schedule('dieUntil', [2])).fetch();
    const { value, visit } = await running(cluster, 'a');
    const queued = [
      await cluster.schedule('add', [3, 4]),
      await cluster.schedule('add', [5, 6], { signal: AbortSignal.timeout(1) }),
    ];
    await expect(queued[1]?.fetch()).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(cluster.stats()).toMatchObject({
      queued: 1,
      inFlight: 1,
      completed: 2,
      failed: 0,
      cancelled: 1,
      retried: 1,
      queuedBytes: expect.any(Number),
      held: 0,
      functions: {
        add: { completed: 1, failed: 0, cancelled: 1, retried: 0 },
        dieUntil: { completed: 1, failed: 0, cancelled: 0, retried: 1 },
      },
      engine: { restarts: 1 },
    });
    visit.pass();
    await cluster.fetch([value, queued[0]]);
    await failed(cluster, 'broken');
    await expect(cluster.join()).rejects.toThrow('broken');
    expect(cluster.stats()).toMatchObject({ queued: 0, inFlight: 0, completed: 4, failed: 1 });
    const { waitMs, runMs } = cluster.stats().functions['hold'] as FunctionStats;
    for (const { p50, p90, p99, max } of [waitMs, runMs]) {
      expect([p50, p90, p99, max]).toEqual([p50, p90, p99, max].toSorted((a, b) => a - b));
      expect(max).toBeGreaterThan(0);
    }
    const { utilization } = cluster.stats();
    expect(utilization).toBeGreaterThan(0);
    expect(utilization).toBeLessThanOrEqual(1);
    const stats = { ...cluster.stats(), utilization };
    expect(JSON.parse(JSON.stringify(stats))).toEqual(stats);
  });

  it('what waits and what has failed, also by explain()', async () => {
    const cluster = start();
    const work = (): string[] | undefined => cluster.coordinator.explain().work;
    const { value, visit } = await running(cluster, 'a');
    const calls = [cluster.run('add', [1, 2]), cluster.run('add', [3, 4])];
    expect(work()).toEqual([expect.stringMatching(/^2 calls wait, 'add' for \S+ m?s$/)]);
    visit.pass();
    expect(await Promise.all([cluster.fetch(value), ...calls])).toContain(7);
    expect(work()).toBeUndefined();
    await failed(cluster, 'broken');
    await expect(cluster.join()).rejects.toThrow('broken');
    expect(work()).toEqual([expect.stringMatching(/' has failed once .* broken$/)]);
    await cluster.close();
    expect(work()).toBeUndefined();
  });
});
