/** A number of workers that follows the work. */

import { ClusterCoordinator, type ElasticWorkers, LocalStrategy } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeIsolations } from '../../support/clusters.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);
const indexesOf = (cluster: ClusterCoordinator): number[] =>
  cluster.workers.map(({ index }) => index);

describeIsolations('workers as', (isolation) => {
  const visits = new Visits();
  beforeEach(() => visits.open());
  afterEach(() => visits.close());

  const start = (workers: ElasticWorkers, options: object = {}): ClusterCoordinator => {
    const env = { ...process.env, VISITS: visits.path };
    const strategy = new LocalStrategy({ module, isolation, workers, env, ...options });
    return new ClusterCoordinator(strategy, { cancelGraceMs: 600_000 });
  };

  it('begin with min, and become more while functions wait, up to max', async () => {
    await using cluster = start({ min: 1, max: 3 });
    await cluster.ready();
    expect(indexesOf(cluster)).toEqual([0]);
    const runs = ['a', 'b', 'c', 'd'].map((name) => cluster.run('hold', [name]));
    const first = await Promise.all(['a', 'b', 'c'].map((name) => visits.next(name)));
    expect(indexesOf(cluster)).toEqual([0, 1, 2]);
    for (const visit of first) visit.pass();
    (await visits.next('d')).pass();
    expect(new Set(await Promise.all(runs)).size).toBe(3);
  });

  it('become as many as a call needs that is placed on one of them', async () => {
    await using cluster = start({ min: 1, max: 3 });
    const placed = cluster.run('hold', ['placed'], { worker: 2 });
    (await visits.next('placed')).pass();
    await placed;
    expect(indexesOf(cluster)).toContain(2);
    expect(indexesOf(cluster)).not.toContain(1);
    await expect(cluster.run('hold', ['never'], { worker: 3 })).rejects.toThrow(RangeError);
  });

  it('become no more than are needed', async () => {
    await using cluster = start({ min: 1, max: 8 });
    await cluster.ready();
    const runs = ['a', 'b'].map((name) => cluster.run('hold', [name]));
    for (const name of ['a', 'b']) (await visits.next(name)).pass();
    await Promise.all(runs);
    expect(indexesOf(cluster)).toEqual([0, 1]);
  });

  it('become fewer when they are idle, down to min, after their teardown', async () => {
    await using cluster = start({ min: 1, max: 3, idleMs: 50 }, { teardown: 'teardown' });
    await cluster.ready();
    const names = ['a', 'b', 'c'];
    const runs = names.map((name) => cluster.run('hold', [name]));
    const held = await Promise.all(names.map((name) => visits.next(name)));
    for (const visit of held) visit.pass();
    await Promise.all(runs);
    // Which two end first depends on whose result has come first.
    let torn = 0;
    await new Promise<void>((resolve) => {
      for (const worker of [0, 1, 2]) {
        void visits.next(`teardown ${worker} after 1`).then((visit) => {
          visit.pass();
          torn += 1;
          if (torn === 2) resolve();
        });
      }
    });
    await cluster.resize(1); // resolves when both are gone
    expect(cluster.workers).toHaveLength(1);
    expect(cluster.stats()).toMatchObject({ engine: { restarts: 0 }, failed: 0 });
  });

  it('may become none, and come back', async () => {
    await using cluster = start({ min: 0, max: 2, idleMs: 20 }, { teardown: 'teardown' });
    expect(await cluster.run('where')).toMatchObject({ worker: 0, ran: 1 });
    const visit = await visits.next('teardown 0 after 1');
    visit.pass();
    await visit.left;
    expect(await cluster.run('where')).toMatchObject({ worker: 0, ran: 1 });
    const again = await visits.next('teardown 0 after 1');
    again.pass();
    await again.left;
  });

  it('end no worker that runs something', async () => {
    await using cluster = start({ min: 1, max: 2, idleMs: 0 });
    const runs = ['a', 'b'].map((name) => cluster.run('hold', [name]));
    const [a, b] = [await visits.next('a'), await visits.next('b')];
    a.pass();
    await runs[0];
    await cluster.run('where');
    b.pass();
    await Promise.all(runs);
    expect(cluster.stats()).toMatchObject({ retried: 0, failed: 0 });
  });

  it('stay as many as resize said', async () => {
    await using cluster = start({ min: 1, max: 2, idleMs: 0 });
    await cluster.resize(4);
    for (let turns = 0; turns < 100; turns++) await new Promise((turn) => setImmediate(turn));
    expect(indexesOf(cluster)).toEqual([0, 1, 2, 3]);
  });
});

describe('limits of workers', () => {
  it.each([
    ['ERR_INVALID_ARG_TYPE', { min: 1 }],
    ['ERR_INVALID_ARG_TYPE', { min: '1', max: 2 }],
    ['ERR_INVALID_ARG_TYPE', { min: 1, max: 2, idleMs: '1' }],
    ['ERR_INVALID_ARG_TYPE', [1, 2]],
    ['ERR_INVALID_ARG_VALUE', { min: 1, max: 2, idle: 1 }],
    ['ERR_OUT_OF_RANGE', { min: -1, max: 2 }],
    ['ERR_OUT_OF_RANGE', { min: 3, max: 2 }],
    ['ERR_OUT_OF_RANGE', { min: 0, max: 0 }],
    ['ERR_OUT_OF_RANGE', { min: 0, max: 1_025 }],
    ['ERR_OUT_OF_RANGE', { min: 0, max: 1, idleMs: -1 }],
  ])('are refused with %s: %o', (code, workers) => {
    const make = (): unknown => new LocalStrategy({ module, workers: workers as ElasticWorkers });
    expect(make).toThrow(expect.objectContaining({ code }));
  });
});
