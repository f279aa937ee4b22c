/** `stats()` of a cluster. */

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
      engine: { restarts: 1 },
    });
    visit.pass();
    await cluster.fetch([value, queued[0]]);
    await failed(cluster, 'broken');
    await expect(cluster.join()).rejects.toThrow('broken');
    expect(cluster.stats()).toMatchObject({ queued: 0, inFlight: 0, completed: 4, failed: 1 });
    expect(JSON.parse(JSON.stringify(cluster.stats()))).toEqual(cluster.stats());
  });
});
