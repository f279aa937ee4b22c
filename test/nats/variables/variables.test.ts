// @module-tag nats
/** Variables on parameter servers: nodes of the job `ps`. */

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Checkpoint, type ClusterCoordinator, ClusterSpec } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { module, variableStories } from '../../cluster/variables/stories.ts';
import { eventually } from '../../support/eventually.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

let scene: NatsScene;
const visits = new Visits();
let clusters = 0;
beforeEach(async () => (scene = await NatsScene.open()));
afterEach(() => scene.close());

/** A cluster of its own name, with a parameter server. */
async function start(workers = 2): Promise<ClusterCoordinator> {
  clusters += 1;
  const cluster = `variables-${clusters}`;
  const made = scene.coordinator({ module, cluster, minWorkers: workers });
  scene.spawn({ module, cluster, job: 'ps' });
  for (let task = 0; task < workers; task += 1) scene.spawn({ module, cluster, task });
  await made.ready();
  return made;
}

describe('variables on a parameter server, as elsewhere', { tags: 'long' }, () => {
  variableStories(start);
});

describe('variables on a parameter server', () => {
  it('are shared out among several, by name or as the program says', async () => {
    const spec = new ClusterSpec({ ps: ['a:1', 'b:1', 'c:1'], worker: ['d:1'] });
    const cluster = scene.coordinator({ module, expect: spec });
    for (const task of [0, 1, 2]) scene.spawn({ module, job: 'ps', task });
    scene.spawn({ module, task: 0 });
    const names = Array.from({ length: 30 }, (_, at) => `w${at}`);
    const all = await Promise.all(names.map((name) => cluster.variable(name, 1)));
    const own = await cluster.variable('own', new Float64Array(100_000).fill(2), { ps: 2 });
    await Promise.all(all.map((each) => cluster.run('add', [each, 1])));
    expect(await Promise.all(all.map((each) => each.read()))).toEqual(names.map(() => 2));
    await own.assignAdd(new Float64Array(100_000).fill(0.5));
    expect((await own.read()).every((each) => each === 2.5)).toBe(true);
    await expect(cluster.variable('far', 0, { ps: 3 })).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
    });
  });

  it('are found by setup functions of workers that were there before, and that join later', {
    tags: 'long',
  }, async () => {
    const first = scene.spawn({ module, task: 0, slots: 2 });
    await first.next('connected');
    const cluster = scene.coordinator({ module, setup: 'setUp' });
    const numbers = cluster.createPerWorkerDataset('numbers').iterator();
    const other = cluster.variable('other', new Float64Array(2));
    await first.next('session');
    scene.spawn({ module, job: 'ps' });
    await other;
    const sum = await cluster.variable('sum', 1);
    scene.spawn({ module, task: 1, slots: 2 });
    expect(await cluster.run('read', [sum], { worker: 0 })).toBeGreaterThan(1);
    await cluster.run('read', [sum], { worker: 1 });
    expect(await cluster.run('next', [numbers], { worker: 0 })).toBe(1);
    expect(await cluster.run('next', [numbers], { worker: 1 })).toBe(1);
    // Four threads that run functions, and each node's thread of data sets.
    await expect.poll(() => sum.read()).toBe(7);
  });

  it('are waited for until one is there, or timeoutMs', async () => {
    const cluster = scene.coordinator({ module, minWorkers: 0 });
    await cluster.ready(); // it is connected
    await expect(cluster.variable('sum', 0, { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message:
        "The variable 'sum' has no parameter server after 200 ms: none is ready. What to do: start one: allstop worker --job ps",
    });
    // A call does not share the timeout of another one with its name.
    const hasty = cluster.variable('shared', 1, { timeoutMs: 200 });
    const patient = cluster.variable('shared', 2);
    const elsewhere = cluster.variable('shared', 3, { ps: 5 });
    const misshapen = cluster.variable('shared', new Float64Array(2));
    misshapen.catch(() => undefined);
    await expect(hasty).rejects.toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
    const far = scene.coordinator({ module, servers: '127.0.0.1:9', cluster: 'far' });
    await expect(far.variable('sum', 0, { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringMatching(
        /after 200 ms: the cluster is .*127\.0\.0\.1:9.* What to do: /,
      ),
    });
    const sum = cluster.variable('sum', 4);
    scene.spawn({ module, job: 'ps' });
    expect(await (await sum).read()).toBe(4);
    expect(await (await patient).read()).toBe(2);
    expect(await elsewhere).toBe(await patient);
    await expect(misshapen).rejects.toMatchObject({ code: 'ERR_ALLSTOP_INVALID_ARGUMENT' });
  });

  it('count each addition once though workers are killed', async () => {
    const cluster = await start(2);
    const [sum, floats] = [
      await cluster.variable('sum', 0),
      await cluster.variable('floats', new Float64Array(1000)),
    ];
    const runs = Array.from({ length: 120 }, (_, at) =>
      cluster
        .run('addBoth', [sum, floats, new Float64Array(1000).fill(1)], { retries: 20 })
        .then(() => {
          if (at === 20 || at === 60) void scene.workers[at === 20 ? 1 : 2]?.kill();
          if (at === 20 || at === 60) {
            scene.spawn({ module, cluster: `variables-${clusters}`, task: at === 20 ? 0 : 1 });
          }
        }),
    );
    await Promise.all(runs);
    expect(await sum.read()).toBe(120);
    expect((await floats.read()).every((each) => each === 120)).toBe(true);
  });

  it('outlive a server that is away, and no addition is lost or counted twice', async () => {
    const cluster = await start(1);
    const sum = await cluster.variable('sum', 0);
    const runs = Array.from({ length: 200 }, () => cluster.run('add', [sum, 1]));
    await Promise.race(runs);
    await scene.server.kill();
    await scene.server.restart();
    await Promise.all(runs);
    expect(await sum.read()).toBe(200);
  });

  it('hear nothing of a worker that comes back to a function that another has ended', async () => {
    await visits.open();
    const cluster = scene.coordinator({ module, lostAfterMs: 1_000 });
    scene.spawn({ module, job: 'ps' });
    const proxy = await scene.proxy();
    const far = scene.spawn({ module, servers: proxy.address, task: 0 });
    const sum = await cluster.variable('sum', 0);
    const last = await cluster.variable('last', 0);
    const call = cluster.run('addWhenTold', [sum, last, visits.path]);
    const first = await visits.next('adder');
    const near = scene.spawn({ module, task: 1 });
    await near.next('session');
    proxy.swallow();
    (await visits.next('adder')).pass(); // the other worker runs it again
    await call;
    first.pass();
    await first.left; // what it adds and assigns waits for the connection
    await last.assign(7);
    proxy.restore();
    await eventually(() =>
      cluster.workers.every(({ job, state }) => job === 'ps' || state === 'idle'),
    );
    expect(far.child.exitCode).toBe(null);
    expect(await sum.read()).toBe(1);
    expect(await last.read()).toBe(7);
    await visits.close();
  });

  it('keep what the later attempt has assigned when a worker comes back with the earlier one', {
    tags: 'long',
  }, async () => {
    await visits.open();
    const cluster = scene.coordinator({ module, lostAfterMs: 1_000 });
    scene.spawn({ module, job: 'ps' });
    const proxy = await scene.proxy();
    scene.spawn({ module, servers: proxy.address, task: 0 });
    const last = await cluster.variable('last', 0);
    const call = cluster.run('assignWhenTold', [last, visits.path]);
    const first = await visits.next('assigner');
    const near = scene.spawn({ module, task: 1 });
    await near.next('session');
    proxy.swallow();
    (await visits.next('assigner')).pass(); // the other worker runs it again
    const second = await visits.next('assigned');
    expect(await last.read()).toBe(2);
    first.pass();
    await first.left; // what it assigns waits for the connection
    proxy.restore();
    const late = await visits.next('assigned');
    expect(await last.read()).toBe(2);
    late.pass();
    second.pass();
    await call;
    expect(await last.read()).toBe(2);
    await visits.close();
  });

  it('are read at once by many, each with a copy, and as they were when the read began', async () => {
    const cluster = scene.coordinator({ module });
    scene.spawn({ module, job: 'ps' });
    const weights = await cluster.variable('weights', new Float64Array([1, 2]));
    const [one, other] = [weights.read(), weights.read()];
    (await one)[0] = 7;
    expect([...(await other)]).toEqual([1, 2]);
    const values = [
      weights.read(),
      weights.assign(new Float64Array([3, 4])).then(() => weights.read()),
      weights.read(),
      weights.assignAdd(new Float64Array([1, 1])).then(() => weights.read()),
      weights.read(),
    ];
    expect((await Promise.all(values)).map((value) => [...value])).toEqual([
      [1, 2],
      [4, 5],
      [3, 4],
      [4, 5],
      [4, 5],
    ]);
  });

  it('are all that is lost with a server: one without any comes and goes', {
    tags: 'long',
  }, async () => {
    const cluster = scene.coordinator({ module });
    scene.spawn({ module, job: 'ps', task: 0 });
    const spare = scene.spawn({ module, job: 'ps', task: 1 });
    scene.spawn({ module, task: 0 });
    await Promise.all([spare.next('session'), cluster.ready()]);
    const sum = await cluster.variable('sum', 1, { ps: 0 });
    const lost = once(cluster, 'workerLost');
    await spare.kill();
    expect(await lost).toMatchObject([{ job: 'ps', index: 1, name: 'ps:1' }, {}]);
    await cluster.run('add', [sum, 1]);
    await cluster.join();
    const waiting = cluster.variable('other', 5, { ps: 1 });
    scene.spawn({ module, job: 'ps', task: 1 });
    const other = await waiting;
    await cluster.run('add', [other, 1]);
    expect([await sum.read(), await other.read()]).toEqual([2, 6]);
  });

  it('are not those of a server that takes the place of theirs', { tags: 'long' }, async () => {
    const cluster = scene.coordinator({ module, lostAfterMs: 60_000 });
    const first = scene.spawn({ module, job: 'ps', task: 0 });
    scene.spawn({ module, task: 0 });
    const sum = await cluster.variable('sum', 1);
    await first.kill();
    const read = sum.read();
    scene.spawn({ module, job: 'ps', task: 0 });
    const unavailable = { code: 'ERR_ALLSTOP_UNAVAILABLE' };
    await expect(read).rejects.toMatchObject(unavailable);
    await expect(sum.assignAdd(1)).rejects.toMatchObject(unavailable);
    await expect(cluster.variable('sum', 1)).rejects.toMatchObject(unavailable);
    await expect(cluster.join()).rejects.toMatchObject({
      ...unavailable,
      message: 'The parameter server ps:0 is lost',
    });
  });

  it('that are lost end the cluster; another one restores the checkpoint', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'allstop-ps-'));
    const cluster = await start(1);
    const sum = await cluster.variable('sum', 41);
    const weights = await cluster.variable('weights', new Int32Array([1, 2]));
    await new Checkpoint(cluster, { directory, state: () => 'state' }).save(3);
    await sum.assign(0);
    const unavailable = { code: 'ERR_ALLSTOP_UNAVAILABLE' };
    await scene.workers[0]?.kill();
    const next = cluster.run('add', [sum, 1]);
    await Promise.all([
      expect(sum.read()).rejects.toMatchObject(unavailable),
      expect(next).rejects.toMatchObject(unavailable),
    ]);
    await expect(weights.assign(new Int32Array(2))).rejects.toMatchObject(unavailable);
    await expect(cluster.join()).rejects.toMatchObject(unavailable);
    await cluster.close();
    const other = await start(1);
    const [again, list] = [
      await other.variable('sum', 0),
      await other.variable('weights', new Int32Array(2)),
    ];
    expect(await new Checkpoint(other, { directory }).restoreLatest()).toBe(3);
    await other.run('add', [again, 1]);
    expect(await again.read()).toBe(42);
    expect([...(await list.read())]).toEqual([1, 2]);
    await rm(directory, { recursive: true });
  });
});
