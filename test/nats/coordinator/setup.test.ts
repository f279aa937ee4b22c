/** `setup` and `teardown` on the nodes of a cluster over NATS. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { outlastThePress } from '../../support/press.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);

describe('the threads of a node', { tags: ['nats'] }, () => {
  const visits = new Visits();
  let scene: NatsScene;
  beforeEach(async () => {
    await visits.open();
    scene = await NatsScene.open();
  });
  afterEach(async () => {
    await scene.close();
    await visits.close();
  });
  const env = { VISITS: visits.path };

  it('call the setup of the strategy before they take functions, and its teardown', async () => {
    const worker = scene.spawn({ module, slots: 2, env });
    const cluster = scene.coordinator({ module, setup: 'heldSetup', teardown: 'teardown' });
    const setups = [await visits.next('setup 0'), await visits.next('setup 0')];
    const early = cluster.run('where');
    const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
    expect(error.report.tasks[0].ready).toBe(false);
    for (const setup of setups) setup.pass();
    expect(await early).toMatchObject({ worker: 0, ran: 1 });
    await cluster.ready();
    const left = worker.kill('SIGTERM');
    const names = ['teardown 0 after 1', 'teardown 0 after 0'];
    for (const name of names) (await visits.next(name)).pass();
    expect(await left).toEqual([143, null]);
  });

  it('do not keep their node from its end by a teardown, after a second SIGTERM', async () => {
    const worker = scene.spawn({ module, env });
    const cluster = scene.coordinator({ module, teardown: 'teardown' }, { cancelGraceMs: 60_000 });
    await cluster.run('where');
    void worker.kill('SIGTERM');
    const { left } = await visits.next('teardown 0 after 1');
    await outlastThePress();
    expect(await worker.kill('SIGTERM')).toEqual([143, null]);
    await left;
  });

  it('call those that their node was started with instead', async () => {
    scene.spawn({ module, setup: 'setup' });
    const cluster = scene.coordinator({ module, setup: 'brokenSetup' });
    expect(await cluster.run('wasSetUp')).toBe(true);
  });

  it('that cannot be set up are named in the error and in the report', async () => {
    scene.spawn({ module });
    const cluster = scene.coordinator({ module, setup: 'brokenSetup' });
    const error = await errorOf(cluster.ready());
    expect(error.message).toContain(
      "could not be set up by 'brokenSetup': RangeError: no database for 0",
    );
    expect(error.report.tasks[0]).toMatchObject({ ready: false, phase: 'setup-failed' });
    const run = await errorOf(cluster.run('where'));
    expect(run.message).toContain("could not be set up by 'brokenSetup'");
  });

  it('are set up again by their node, which serves the next coordinator, after such an end', async () => {
    const worker = scene.spawn({ module });
    const first = scene.coordinator({ module, setup: 'brokenSetup' });
    await errorOf(first.ready());
    await first.close();
    const next = scene.coordinator({ module, setup: 'setup' });
    expect(await next.run('wasSetUp')).toBe(true);
    expect(next.workers).toMatchObject([{ pid: worker.child.pid }]);
  });

  it('do not fail the cluster while one of their node may still be set up', async () => {
    scene.spawn({ module, slots: 2, env });
    const cluster = scene.coordinator({ module, setup: 'heldSetup' });
    const one = await visits.next('setup 0');
    const other = await visits.next('setup 0');
    one.fail('no database');
    const again = await visits.next('setup 0');
    again.fail('no database yet');
    other.pass();
    expect(await cluster.run('where')).toMatchObject({ worker: 0, ran: 1 });
    (await visits.next('setup 0')).pass();
    await cluster.ready();
  });

  const setUpAfter = async (count: number): Promise<void> => {
    scene.spawn({ module, setup: 'setup', task: 0 });
    const late = scene.spawn({ module, task: 1, env });
    const cluster = scene.coordinator({ module, setup: 'heldSetup', minWorkers: 2 });
    expect(await cluster.run('where')).toMatchObject({ worker: 0 });
    for (let failures = 0; failures < count; failures += 1) {
      (await visits.next('setup 1')).fail('no database');
    }
    const visit = await visits.next('setup 1');
    const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
    expect(error.report.tasks).toMatchObject([{ ready: true }, { ready: false }]);
    visit.pass();
    await cluster.ready();
    expect(cluster.workers[1]).toMatchObject({ pid: late.child.pid, restarts: count });
  };

  it('are set up again, if another worker was ready', () => setUpAfter(2));

  it('are set up again, if a worker was ready that is gone', async () => {
    const early = scene.spawn({ module, setup: 'setup', task: 0 });
    scene.spawn({ module, task: 1, env });
    const cluster = scene.coordinator({ module, setup: 'heldSetup', minWorkers: 2 });
    expect(await cluster.run('where')).toMatchObject({ worker: 0 });
    await early.kill('SIGTERM');
    await eventually(() => cluster.workers[0]?.state === 'left');
    (await visits.next('setup 1')).fail('no database');
    (await visits.next('setup 1')).fail('no database');
    (await visits.next('setup 1')).pass();
    expect(await cluster.run('where')).toMatchObject({ worker: 1 });
  });

  // A worker that dies otherwise ten times before it is ready ends.
  it('are set up again and again', { tags: 'long', timeout: 120_000 }, () => setUpAfter(12));

  it('are replaced between functions, as --recycle says', async () => {
    scene.spawn({ module, recycle: 'tasks=2' });
    const cluster = scene.coordinator({ module });
    const runs = Array.from({ length: 5 }, () => cluster.run('where'));
    const ran = (await Promise.all(runs)) as { ran: number }[];
    expect(ran.map(({ ran: count }) => count)).toEqual([1, 2, 1, 2, 1]);
    expect(cluster.stats()).toMatchObject({ retried: 0, engine: { restarts: 0 } });
  });
});
