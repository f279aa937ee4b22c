/** What `allstop doctor` and `explain()` say about work: what waits, runs and fails. */
// @module-tag nats
import { afterEach, beforeEach, expect, it } from 'vitest';
import { diagnose, doctor, problemsOf } from '../../support/nats-doctor.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

let scene: NatsScene;
const visits = new Visits();
beforeEach(async () => {
  await visits.open();
  scene = await NatsScene.open();
});
afterEach(async () => {
  await scene.close();
  await visits.close();
});

const look = () => diagnose(scene.server.address, 'test');

it('calls that no worker can take are a problem; a line and failures are none', {
  timeout: 60_000,
}, async () => {
  const cluster = scene.coordinator({ minWorkers: 0 });
  await cluster.ready();
  const square = cluster.run('square', [2]);
  await expect.poll(() => cluster.stats().queued, { timeout: 30_000 }).toBe(1);
  const alone = await look();
  expect(alone.status).toBe(1);
  expect(problemsOf(alone)).toEqual([
    expect.objectContaining({
      name: 'calls',
      cause: expect.stringMatching(/1 call waits, 'square' .*no worker is ready/),
    }),
  ]);
  expect(cluster.coordinator.explain().work).toEqual([
    expect.stringMatching(/^1 call waits, 'square' for .*: no worker is ready$/),
  ]);
  scene.spawn();
  await square;
  await cluster.run('fail', ['no']).catch(() => {});
  const held = cluster.run('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  const behind = cluster.run('square', [3]);
  await expect.poll(() => cluster.stats().queued, { timeout: 30_000 }).toBe(1);
  const busy = await look();
  expect(busy).toMatchObject({ status: 0, ok: true });
  expect(busy).toMatchObject({
    work: {
      waiting: 1,
      oldest: { name: 'square' },
      running: [{ worker: 'worker:0', name: 'holdAndSay' }],
      failures: [{ name: 'fail', count: 1, last: 'no' }],
    },
  });
  // Behind a line of calls that wait for busy workers.
  const gaveUp = new AbortController();
  const options = { resources: { licence: 1 }, signal: gaveUp.signal };
  const licensed = cluster.run('square', [5], options);
  licensed.catch(() => {});
  await expect.poll(() => cluster.stats().queued, { timeout: 30_000 }).toBe(2);
  expect(problemsOf(await look())).toEqual([
    expect.objectContaining({
      name: 'calls',
      cause: expect.stringMatching(/^2 calls wait, .*licence=1$/),
    }),
  ]);
  gaveUp.abort();
  const explained = cluster.coordinator.explain();
  expect(explained.workers).toEqual([
    expect.stringMatching(/^worker:0 \(process \d+ on .*\): runs 'holdAndSay' for /),
  ]);
  expect(explained.work).toEqual([
    expect.stringMatching(/^1 call waits, 'square' for [^:]*$/),
    "'fail' has failed once in the last minutes. The last: no",
  ]);
  expect(String(explained)).toMatch(/^Work:\n {2}- 1 call waits/m);
  visit.pass();
  await Promise.all([held, behind]);
  const gpu = cluster.run('square', [4], { resources: { gpu: 1 } });
  gpu.catch(() => {});
  await expect.poll(() => cluster.stats().queued, { timeout: 30_000 }).toBe(1);
  expect(problemsOf(await look())).toEqual([
    expect.objectContaining({ name: 'calls', cause: expect.stringContaining('gpu=1') }),
  ]);
});

it('a JetStream of another domain: doctor is told its name', async () => {
  await scene.close();
  const { scene: apart, leaf } = await NatsScene.openHubAndLeaf();
  scene = apart;
  const cluster = scene.coordinator({ servers: leaf.address, jetstream: { domain: 'hub' } });
  scene.spawn({ servers: leaf.address });
  await cluster.ready();
  const args = ['--servers', leaf.address, '--cluster', 'test'];
  const astray = await doctor(args);
  expect(astray.status).toBe(1);
  expect(astray.stdout).toMatch(/jetstream .*\n.*Cause: /i);
  const found = await doctor([...args, '--domain', 'hub']);
  expect(found.stdout).toContain('No problem found.');
  expect(found.status).toBe(0);
});
