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

it('a cluster that has failed says so, and why', async () => {
  const older = await scene.start(1);
  await scene.coordinator().ready();
  await expect
    .poll(() => older.coordinator.explain().work, { timeout: 30_000 })
    .toEqual([expect.stringMatching(/^every call is refused: A newer run has taken over/)]);
});

it('what fails again and again is told before it is given up', { timeout: 120_000 }, async () => {
  const cluster = await scene.start(2, {}, { lostAfterMs: 1_000 });
  const gaveUp = new AbortController();
  const { signal } = gaveUp;
  const options = { signal, retries: 9, retryOn: () => true, retryDelayMs: 600_000 };
  const failing = cluster.run('fail', ['no'], options);
  failing.catch(() => {});
  /** Resolves to what doctor says when the program itself knows of it. */
  const failures = async (known: RegExp): Promise<string> => {
    const work = (): string => (cluster.coordinator.explain().work ?? []).join('\n');
    await expect.poll(work, { timeout: 60_000 }).toMatch(known);
    const told = (await look()).checks.filter(({ name }) => name === 'failures');
    return told.map(({ target, detail }) => `${target}: ${detail}`).join('\n');
  };
  expect(await failures(/'fail' has failed/)).toMatch(/^fail: 1 .* The last: no$/);
  // Both workers die of it; what died beside it once is not named.
  const killing = cluster.run('noteOrKill', ['/dev/null', -1], { signal, retries: 9 });
  killing.catch(() => {});
  expect(await failures(/'noteOrKill' has failed/)).toMatch(
    /^noteOrKill: 1 .* The last: 'noteOrKill' lost its worker 2 times in 2 attempts/m,
  );
  gaveUp.abort();
});

it('a run that was stopped is told, and misses no worker', { timeout: 60_000 }, async () => {
  const cluster = await scene.start(1);
  cluster.coordinator.requestStop(new RangeError('boom'));
  // More threads than it starts at once: none starts any more.
  const late = scene.spawn({ slots: 16 });
  await late.next('session');
  const args = ['--servers', scene.server.address, '--cluster', 'test'];
  const { stdout, status } = await doctor(args);
  expect(stdout).toMatch(/holds the cluster; stopped \d+ s ago, since .*RangeError: boom/);
  expect(stdout).toContain('No problem found.');
  expect(status).toBe(0);
  await cluster.coordinator.join().catch(() => {});
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
  const mistyped = await doctor([...args, '--domain', 'hubb']);
  expect(mistyped.stdout).toMatch(/Cause: .* no server has it.*'hubb'.*\n.*What to do: .*--domain/);
  const found = await doctor([...args, '--domain', 'hub']);
  expect(found.stdout).toContain('No problem found.');
  expect(found.status).toBe(0);
});
