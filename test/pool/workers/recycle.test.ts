/** Workers that are replaced between functions. */

import { ClusterCoordinator, LocalStrategy, type WorkerInfo } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeIsolations, errorOf } from '../../support/clusters.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);

describeIsolations('recycling workers as', (isolation) => {
  const visits = new Visits();
  beforeEach(() => visits.open());
  afterEach(() => visits.close());

  const start = (options: object): ClusterCoordinator => {
    const env = { ...process.env, VISITS: visits.path };
    const strategy = new LocalStrategy({ module, isolation, workers: 1, env, ...options });
    return new ClusterCoordinator(strategy, { cancelGraceMs: 600_000 });
  };

  it('gives each as many functions as it may run, in order, and charges nobody', async () => {
    await using cluster = start({ recycle: { tasks: 4 } });
    const lost: WorkerInfo[] = [];
    cluster.on('workerLost', (info) => lost.push(info));
    const ran: any[] = await Promise.all(Array.from({ length: 10 }, () => cluster.run('where')));
    expect(ran.map(({ ran: count }) => count)).toEqual([1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
    expect(new Set(ran.map(({ place }) => place)).size).toBe(3);
    expect(cluster.stats()).toMatchObject({
      retried: 0,
      failed: 0,
      engine: { restarts: 0, recycled: 2 },
    });
    expect(cluster.workers[0]).toMatchObject({ completed: 10, restarts: 0 });
    expect(lost).toEqual([]);
  });

  it('happens after teardown, and before setup', async () => {
    await using cluster = start({ recycle: { tasks: 1 }, setup: 'setup', teardown: 'teardown' });
    expect(await cluster.run('wasSetUp')).toBe(true);
    const next = cluster.run('wasSetUp');
    (await visits.next('teardown 0 after 1')).pass();
    expect(await next).toBe(true);
    (await visits.next('teardown 0 after 1')).pass();
  });

  it('does not stop the deadline of a function that waits for the new worker', async () => {
    await using cluster = start({ recycle: { tasks: 1 }, setup: 'heldSetup' });
    (await visits.next('setup 0')).pass();
    expect(await cluster.run('where')).toMatchObject({ ran: 1 });
    const setup = await visits.next('setup 0');
    const late = await errorOf(cluster.run('where', [], { timeoutMs: 50, retries: 0 }));
    expect(late.code).toBe('ERR_ALLSTOP_DEADLINE_EXCEEDED');
    const next = cluster.run('where');
    setup.pass();
    expect(await next).toMatchObject({ ran: 1 });
    (await visits.next('setup 0')).pass();
    await cluster.ready();
  });

  it('waits for all functions of a worker that runs several', async () => {
    await using cluster = start({ recycle: { tasks: 2 }, concurrency: 4 });
    const names = ['a', 'b', 'c'];
    const runs = names.map((name) => cluster.run('hold', [name]));
    const [a, b] = [await visits.next('a'), await visits.next('b')];
    a.pass();
    const first = await runs[0];
    b.pass();
    expect(await runs[1]).toBe(first);
    (await visits.next('c')).pass();
    expect(await runs[2]).not.toBe(first);
    expect(visits.names).toEqual(names);
  });

  it('replaces a worker whose heap has grown', async () => {
    await using cluster = start({ recycle: { heapMb: 64 } });
    const places = [
      await cluster.run('hoard', [1]),
      await cluster.run('hoard', [80]),
      await cluster.run('hoard', [1]),
    ];
    expect(places[0]).toBe(places[1]);
    expect(places[2]).not.toBe(places[1]);
    expect(cluster.stats()).toMatchObject({ retried: 0, engine: { restarts: 0, recycled: 1 } });
  });

  it('goes on, however small the heap may be', { tags: 'long' }, async () => {
    await using cluster = start({ recycle: { heapMb: 0.001 }, workers: 2 });
    const ran = await Promise.all(Array.from({ length: 6 }, () => cluster.run('attempt')));
    expect(ran).toEqual([1, 1, 1, 1, 1, 1]);
    expect(cluster.stats()).toMatchObject({ retried: 0, failed: 0, engine: { restarts: 0 } });
  });

  it('a death before its time is charged as ever', async () => {
    await using cluster = start({ recycle: { tasks: 3 } });
    const died = cluster.run('die', ['dying']);
    (await visits.next('dying')).pass();
    expect(await died).toBe(2);
    expect(cluster.stats()).toMatchObject({ retried: 1, engine: { restarts: 1, recycled: 0 } });
  });
});

describe('recycle', () => {
  it.each([
    ['ERR_INVALID_ARG_TYPE', 3],
    ['ERR_INVALID_ARG_TYPE', { tasks: '3' }],
    ['ERR_INVALID_ARG_TYPE', { heapMb: '3' }],
    ['ERR_INVALID_ARG_VALUE', { heapMB: 3 }],
    ['ERR_OUT_OF_RANGE', { tasks: 0 }],
    ['ERR_OUT_OF_RANGE', { tasks: 1.5 }],
    ['ERR_OUT_OF_RANGE', { heapMb: 0 }],
    ['ERR_OUT_OF_RANGE', { heapMb: Number.NaN }],
  ])('is refused with %s: %o', (code, recycle) => {
    const make = (): unknown => new LocalStrategy({ module, recycle: recycle as object });
    expect(make).toThrow(expect.objectContaining({ code }));
  });
});
