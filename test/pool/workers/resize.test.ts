/** More and fewer workers, while functions run. */

import {
  CancelledError,
  ClusterCoordinator,
  LocalStrategy,
  type WorkerInfo,
} from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeIsolations, errorOf } from '../../support/clusters.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);
const indexesOf = (cluster: ClusterCoordinator): number[] =>
  cluster.workers.map(({ index }) => index);

describeIsolations('resize, of workers as', (isolation) => {
  const visits = new Visits();
  beforeEach(() => visits.open());
  afterEach(() => visits.close());

  const start = (workers: number, options: object = {}): ClusterCoordinator => {
    const env = { ...process.env, VISITS: visits.path };
    const strategy = new LocalStrategy({ module, isolation, workers, env, ...options });
    return new ClusterCoordinator(strategy, { cancelGraceMs: 600_000 });
  };
  const hold = async (cluster: ClusterCoordinator, name: string) => {
    const run = cluster.run('hold', [name]);
    return { run, visit: await visits.next(name) };
  };

  it('adds workers, which are ready when it resolves', async () => {
    await using cluster = start(1);
    await cluster.resize(3);
    expect(indexesOf(cluster)).toEqual([0, 1, 2]);
    expect(cluster.workers.every(({ state }) => state === 'idle')).toBe(true);
    const held = [await hold(cluster, 'a'), await hold(cluster, 'b'), await hold(cluster, 'c')];
    for (const { visit } of held) visit.pass();
    expect(new Set(await Promise.all(held.map(({ run }) => run))).size).toBe(3);
  });

  it('to one while all are busy ends no function, and loses none', async () => {
    await using cluster = start(3);
    await cluster.ready();
    const lost: WorkerInfo[] = [];
    cluster.on('workerLost', (info) => lost.push(info));
    const held = [await hold(cluster, 'a'), await hold(cluster, 'b'), await hold(cluster, 'c')];
    let isResized = false;
    const resized = cluster.resize(1).then(() => {
      isResized = true;
    });
    const more = Array.from({ length: 20 }, () => cluster.run('where'));
    held[0]?.visit.pass();
    for (const each of await Promise.all(more)) expect(each).toMatchObject({ worker: 0 });
    expect(isResized).toBe(false);
    for (const { visit } of held.slice(1)) visit.pass();
    await resized;
    await Promise.all(held.map(({ run }) => run));
    expect(indexesOf(cluster)).toEqual([0]);
    expect(lost).toEqual([]);
    expect(cluster.stats()).toMatchObject({ retried: 0, engine: { restarts: 0 } });
  });

  it('calls teardown in those that go, and waits for it', async () => {
    await using cluster = start(2, { teardown: 'teardown' });
    await cluster.ready();
    const resized = cluster.resize(1);
    (await visits.next('teardown 1 after 0')).pass();
    await resized;
    void visits.next('teardown 0 after 0').then((visit) => visit.pass());
  });

  it('up again before they are gone replaces them', async () => {
    await using cluster = start(2);
    await cluster.ready();
    const { run, visit } = await hold(cluster, 'a');
    const other = await hold(cluster, 'b');
    const down = cluster.resize(1);
    const up = cluster.resize(2);
    visit.pass();
    other.visit.pass();
    await Promise.all([down, up, run, other.run]);
    expect(indexesOf(cluster)).toEqual([0, 1]);
    const after = await Promise.all([0, 1].map((n) => hold(cluster, `after ${n}`)));
    for (const each of after) each.visit.pass();
    expect(new Set(await Promise.all(after.map((each) => each.run))).size).toBe(2);
  });

  it('gives new workers their data sets, and forgets those of workers that are gone', async () => {
    await using cluster = start(2);
    const numbers = cluster.createPerWorkerDataset('numbers').iterator();
    await cluster.resize(1);
    const more = cluster.createPerWorkerDataset('numbers').iterator();
    await cluster.resize(2);
    await cluster.ready();
    const { run, visit } = await hold(cluster, 'a');
    const other = cluster.workers.find(({ state }) => state === 'idle')?.index;
    expect(await cluster.run('next', [numbers])).toBe(other);
    expect(await cluster.run('next', [more])).toBe(other);
    visit.pass();
    await run;
  });

  it('rejects when a new worker cannot be set up, and the cluster goes on', async () => {
    await using cluster = start(1, { setup: 'brokenOnOne' });
    await cluster.ready();
    const error = await errorOf(cluster.resize(2));
    expect(error.code).toBe('ERR_ALLSTOP_UNAVAILABLE');
    expect(error.message).toContain('no database for 1');
    await cluster.resize(1);
    expect(await cluster.run('where')).toMatchObject({ worker: 0 });
    expect(indexesOf(cluster)).toEqual([0]);
  });

  it('fails what is placed on a worker that goes, and nothing else', async () => {
    await using cluster = start(2);
    await cluster.ready();
    const held = [await hold(cluster, 'a'), await hold(cluster, 'b')];
    const placed = errorOf(cluster.run('where', [], { worker: 1 }));
    const other = cluster.run('where', [], { worker: 0 });
    const resized = cluster.resize(1);
    const error = await placed;
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toContain('the cluster has 1 worker');
    for (const { visit } of held) visit.pass();
    await resized;
    expect(await other).toMatchObject({ worker: 0 });
    await Promise.all(held.map(({ run }) => run));
    await expect(cluster.run('where', [], { worker: 1 })).rejects.toThrow(RangeError);
    await cluster.join();
  });

  it('fails what was placed on a worker that went, and died before it had run it', async () => {
    await using cluster = start(2);
    await cluster.ready();
    const died = errorOf(cluster.run('die', ['a'], { worker: 1 }));
    const visit = await visits.next('a');
    const resized = cluster.resize(1);
    visit.pass();
    expect(await died).toBeInstanceOf(RangeError);
    await resized;
    expect(indexesOf(cluster)).toEqual([0]);
  });

  it('fails what was placed on a worker that went, and threw an error to be run again', async () => {
    await using cluster = start(2);
    await cluster.ready();
    const threw = errorOf(cluster.run('hold', ['a'], { worker: 1, retryOn: () => true }));
    const visit = await visits.next('a');
    const resized = cluster.resize(1);
    visit.fail('a');
    expect(await threw).toMatchObject({ message: expect.stringContaining('a') });
    await resized;
    expect(cluster.stats()).toMatchObject({ queued: 0, retried: 0 });
  });

  it('cancels what was placed on a worker that goes, and threw an error after a stop', async () => {
    await using cluster = start(2);
    await cluster.ready();
    const threw = errorOf(cluster.run('hold', ['a'], { worker: 1, retryOn: () => true }));
    const visit = await visits.next('a');
    const resized = errorOf(cluster.resize(1));
    cluster.coordinator.requestStop();
    visit.fail('a');
    expect(await threw).toBeInstanceOf(CancelledError);
    await resized;
  });

  it('is cancelled by close and by a stop', async () => {
    for (const end of ['close', 'stop']) {
      const cluster = start(1, { setup: 'heldSetup' });
      (await visits.next('setup 0')).pass();
      await cluster.ready();
      const resized = errorOf(cluster.resize(2));
      await visits.next('setup 1');
      if (end === 'stop') cluster.coordinator.requestStop();
      else await cluster.close();
      expect(await resized).toBeInstanceOf(CancelledError);
      await cluster.close();
      expect((await errorOf(cluster.resize(1))).code).toBe('ERR_ALLSTOP_FAILED_PRECONDITION');
    }
  });

  it('adds a worker for which a call waits, as explain() says', async () => {
    await using cluster = start(1, { setup: 'heldSetup' });
    (await visits.next('setup 0')).pass();
    await cluster.ready();
    const resized = cluster.resize(2);
    const setup = await visits.next('setup 1');
    const ran = cluster.run('where', [], { worker: 1 });
    expect(cluster.coordinator.explain().work).toEqual([
      expect.stringMatching(/^1 call waits, 'where' for .*: worker 1 is not ready$/),
    ]);
    setup.pass();
    await resized;
    expect(await ran).toMatchObject({ worker: 1 });
  });

  it('during a drain is done', async () => {
    const cluster = start(1);
    await cluster.ready();
    const { run, visit } = await hold(cluster, 'a');
    const closed = cluster.close({ drainMs: 60_000 });
    await cluster.resize(2);
    visit.pass();
    await Promise.all([run, closed]);
  });
});

describe('resize', () => {
  it.each([
    ['ERR_OUT_OF_RANGE', 0],
    ['ERR_OUT_OF_RANGE', -1],
    ['ERR_OUT_OF_RANGE', 1.5],
    ['ERR_OUT_OF_RANGE', 1_025],
    ['ERR_INVALID_ARG_TYPE', '2'],
    ['ERR_INVALID_ARG_TYPE', undefined],
  ])('refuses with %s: %s', async (code, workers) => {
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
    expect((await errorOf(cluster.resize(workers as number))).code).toBe(code);
    expect(cluster.workers).toHaveLength(1);
  });

  it('is not for a cluster on NATS', async () => {
    const strategy = new NatsStrategy({ module, servers: '127.0.0.1:1', cluster: 'c' });
    await using cluster = new ClusterCoordinator(strategy);
    const error = await errorOf(cluster.resize(2));
    expect(error.code).toBe('ERR_ALLSTOP_FAILED_PRECONDITION');
  });
});
