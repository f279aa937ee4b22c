/** Several asynchronous functions at once on one worker. */

import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import {
  ClusterCoordinator,
  DeadlineExceededError,
  LocalStrategy,
  transfer,
} from 'allstop/cluster';
import { killWorker } from 'allstop/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeIsolations, errorOf } from '../../support/clusters.ts';
import { turn } from '../../support/gate.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);

describeIsolations('a worker as', (isolation) => {
  const visits = new Visits();
  beforeEach(() => visits.open());
  afterEach(() => visits.close());

  const start = (concurrency: number, workers = 1, cancelGraceMs = 600_000): ClusterCoordinator => {
    const env = { ...process.env, VISITS: visits.path };
    const strategy = new LocalStrategy({ module, isolation, workers, concurrency, env });
    return new ClusterCoordinator(strategy, { cancelGraceMs });
  };
  const held = async (cluster: ClusterCoordinator, names: string[]) => {
    const runs = names.map((name) => cluster.run('hold', [name]));
    return { runs, visit: await Promise.all(names.map((name) => visits.next(name))) };
  };

  it('runs as many functions at once as it may, and no more', async () => {
    await using cluster = start(3);
    const { runs, visit } = await held(cluster, ['a', 'b', 'c']);
    const fourth = cluster.run('hold', ['d']);
    const [info] = cluster.workers;
    expect(info?.calls).toHaveLength(3);
    visit[1]?.pass();
    await runs[1];
    const last = await visits.next('d');
    expect(visits.names).toEqual(['a', 'b', 'c', 'd']);
    for (const each of [visit[0], visit[2], last]) each?.pass();
    const places = new Set(await Promise.all([...runs, fourth]));
    expect(places.size).toBe(1);
  });

  it('gets a second function when every other has one', async () => {
    await using cluster = start(2, 2);
    await cluster.ready();
    const { runs, visit } = await held(cluster, ['a', 'b']);
    for (const each of visit) each.pass();
    expect(new Set(await Promise.all(runs)).size).toBe(2);
  });

  it('runs short functions while it waits for others, in order', async () => {
    await using cluster = start(2);
    const { runs, visit } = await held(cluster, ['a']);
    const short = await Promise.all(Array.from({ length: 300 }, () => cluster.run('attempt')));
    expect(short).toEqual(short.map(() => 1));
    visit[0]?.pass();
    await Promise.all(runs);
    await cluster.join();
  });

  it('two that are cancelled are both told, though one does not yield', async () => {
    if (isolation === 'process') return; // one that does not yield is not told there
    await using cluster = start(2);
    const abort = new AbortController();
    const { signal } = abort;
    const waiting = errorOf(cluster.run('hold', ['a'], { signal }));
    const visit = await visits.next('a');
    const spinning = errorOf(cluster.run('spinUntilStopped', ['b'], { signal }));
    (await visits.next('b')).pass();
    abort.abort('enough');
    expect(await Promise.all([waiting, spinning])).toEqual(['enough', 'enough']);
    visit.pass();
    await cluster.join();
    expect(cluster.workers[0]).toMatchObject({ restarts: 0, completed: 2 });
  });

  it('what ran beside a function that had to be ended runs again, and is no suspect', async () => {
    await using cluster = start(3, 1, 0);
    const { visit } = await held(cluster, ['neighbour']);
    const retries: number[] = [];
    cluster.on('retry', ({ attempt }) => retries.push(attempt));
    const single = errorOf(cluster.run('hold', ['once'], { retries: 0 }));
    await visits.next('once');
    const again = visits.next('neighbour'); // its second attempt
    const late = errorOf(cluster.run('hold', ['stubborn'], { timeoutMs: 1_000, retries: 0 }));
    await visits.next('stubborn');
    expect(await late).toBeInstanceOf(DeadlineExceededError);
    await visit[0]?.left;
    expect((await single).message).toMatch(
      /'hold' lost its worker once in 1 attempt \(retries: 0\)/,
    );
    const beside = cluster.run('hold', ['beside']);
    const both = [await again, await visits.next('beside')]; // it is not alone
    for (const each of both) each.pass();
    await beside;
    await cluster.join();
    expect(retries).toEqual([2]);
    expect(visits.names.filter((name) => name === 'once')).toHaveLength(1);
  });

  it('a function that kills it runs alone, and so does what ran beside it', async () => {
    await using cluster = start(4);
    const { runs, visit } = await held(cluster, ['x', 'y']);
    const poison = cluster.run('die', ['poison']);
    (await visits.next('poison')).pass();
    for (const each of visit) await each.left;
    // Each is a suspect now: none begins before the one before it has ended.
    const first = await visits.next('x');
    expect(visits.names.filter((name) => name === 'y')).toHaveLength(1);
    expect(cluster.workers[0]?.running).toBe(1);
    first.pass();
    (await visits.next('y')).pass();
    expect(await poison).toBe(2);
    await Promise.all(runs);
    expect(cluster.stats()).toMatchObject({ completed: 3, failed: 0, retried: 3 });
  });

  it('a suspect does not begin beside another function', async () => {
    await using cluster = start(2);
    const { runs, visit } = await held(cluster, ['x']);
    const poison = cluster.run('die', ['poison']);
    const dying = await visits.next('poison');
    const innocent = cluster.run('hold', ['innocent']); // it waits: two run
    dying.pass();
    await visit[0]?.left;
    const beside = await visits.next('innocent'); // first: the suspects are behind it
    expect(cluster.workers[0]?.running).toBe(1);
    beside.pass();
    (await visits.next('x')).pass();
    expect(await poison).toBe(2);
    await Promise.all([...runs, innocent]);
  });
});

describe('concurrency', () => {
  it.each([
    ['ERR_OUT_OF_RANGE', 0],
    ['ERR_OUT_OF_RANGE', 1.5],
    ['ERR_OUT_OF_RANGE', 1_025],
    ['ERR_INVALID_ARG_TYPE', '2'],
  ])('is refused with %s: %s', (code, concurrency) => {
    const make = (): unknown => new LocalStrategy({ module, concurrency: concurrency as number });
    expect(make).toThrow(expect.objectContaining({ code }));
  });
});

it('what cannot be sent fails its own call, and none of the same message', async () => {
  const code = `
    import { workerData } from 'node:worker_threads';
    await Atomics.waitAsync(workerData, 0, 0).value;
    export const echo = (value) => value;`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const workerData = new Int32Array(new SharedArrayBuffer(4)).fill(1);
  const strategy = new LocalStrategy({ module: url, workers: 1, concurrency: 2, workerData });
  await using cluster = new ClusterCoordinator(strategy);
  await cluster.ready();
  Atomics.store(workerData, 0, 0);
  await killWorker(cluster, { worker: 0 });
  const { port1, port2 } = new MessageChannel();
  const lost = errorOf(cluster.run('echo', [transfer(port1, [port1])]));
  const other = cluster.run('echo', [7]);
  port2.close();
  await once(port2, 'close');
  await turn(); // the port that was moved is closed, too
  Atomics.store(workerData, 0, 1);
  Atomics.notify(workerData, 0);
  expect(await lost).toMatchObject({ name: 'DataCloneError' });
  expect(await other).toBe(7);
});
