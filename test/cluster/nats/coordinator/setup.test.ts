/** `setup` and `teardown` on the nodes of a cluster over NATS. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf } from '../../../support/clusters.ts';
import { NatsScene } from '../../../support/nats-scene.ts';
import { Visits } from '../../../support/visits.ts';

const module = new URL('../../../fixtures/cluster-worker-tasks.mjs', import.meta.url);

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
    expect(error.message).toContain("could not be set up by 'brokenSetup': no database for 0");
    expect(error.report.tasks[0]).toMatchObject({ ready: false, phase: 'setup-failed' });
    const run = await errorOf(cluster.run('where'));
    expect(run.message).toContain("could not be set up by 'brokenSetup'");
  });

  it('are replaced between functions, as --recycle says', async () => {
    scene.spawn({ module, recycle: 'tasks=2' });
    const cluster = scene.coordinator({ module });
    const runs = Array.from({ length: 5 }, () => cluster.run('where'));
    const ran = (await Promise.all(runs)) as { ran: number }[];
    expect(ran.map(({ ran: count }) => count)).toEqual([1, 2, 1, 2, 1]);
    expect(cluster.stats()).toMatchObject({ retried: 0, engine: { restarts: 0 } });
  });
});
