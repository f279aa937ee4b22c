/** Workers that end in order are no loss, and an outage of the servers is told once. */
// @module-tag nats
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { checkConnectionOptions } from '../../../lib/nats/connection/connection-options.ts';
import { ClusterNode } from '../../../lib/nats/node/node.ts';
import { diagnose } from '../../support/nats-doctor.ts';
import { NatsScene, works } from '../../support/nats-scene.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';

let scene: NatsScene;
beforeEach(async () => {
  scene = await NatsScene.open();
});
afterEach(() => scene.close());

it('a worker that has left in order is no problem, and in no count of losses', async () => {
  const cluster = await scene.start(2);
  const lost: unknown[] = [];
  cluster.on('workerLost', (worker) => lost.push(worker));
  await works(cluster);
  const [leaver] = scene.workers as [NatsWorker];
  expect(await leaver.kill('SIGTERM')).toEqual([143, null]);
  await expect
    .poll(() => cluster.workers[0], { timeout: 30_000 })
    .toMatchObject({ state: 'left', restarts: 0 });
  expect(cluster.stats().engine).toMatchObject({ nodesLost: 0, restarts: 0 });
  expect(lost).toEqual([]);
  expect(await diagnose(scene.server.address, 'test', {})).toMatchObject({ status: 0, ok: true });
  await works(cluster);
  // Another takes its place, and that is no restart.
  scene.spawn();
  await expect
    .poll(() => cluster.workers[0], { timeout: 30_000 })
    .toMatchObject({ state: 'idle', restarts: 0 });
});

it('functions hear that their coordinator closes, and their calls keep their results', async () => {
  const module = new URL('../../fixtures/leaving-tasks.mjs', import.meta.url);
  const cluster = scene.coordinator({ module });
  scene.spawn({ module });
  await cluster.ready();
  let result: Promise<unknown> | undefined;
  await new Promise((resolve) => {
    result = cluster.run('saves', ['all'], { retries: 0, onProgress: resolve });
  });
  await cluster.close({ drainMs: 600_000 });
  expect(await result).toBe('saved all');
});

it('an outage of the servers is an event, and so is its end', async () => {
  const cluster = await scene.start(1);
  const told: string[] = [];
  cluster.on('disconnected', ({ message }) => told.push(message));
  cluster.on('reconnected', () => told.push('reconnected'));
  const back = once(cluster, 'reconnected');
  await scene.server.kill();
  await expect.poll(() => told.length, { timeout: 30_000 }).toBe(1);
  await scene.server.restart();
  await back;
  await works(cluster);
  expect(told).toEqual([
    expect.stringContaining('The connection to the NATS servers is lost'),
    'reconnected',
  ]);
});

it('a node that is closed while it connects anew leaves no timer', async () => {
  const module = new URL('../../fixtures/leaving-tasks.mjs', import.meta.url);
  const proxy = await scene.proxy();
  const cluster = scene.coordinator({ module, teardown: 'endsLate' });
  const events: string[] = [];
  const node = new ClusterNode({
    module,
    cluster: 'test',
    connection: checkConnectionOptions({ servers: proxy.address }),
    job: 'worker',
    task: undefined,
    spec: undefined,
    definition: undefined,
    slots: 1,
    version: '1',
    onEvent: ({ event }) => events.push(event),
  });
  await cluster.ready();
  const timers = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  proxy.restore(); // cuts what is there
  await expect.poll(() => events.at(-1), { interval: 5 }).toBe('disconnected');
  let isClosed = false;
  void node.close().then(() => {
    isClosed = true;
  });
  await expect.poll(() => events.at(-1), { interval: 5, timeout: 60_000 }).toBe('connected');
  expect(isClosed).toBe(false); // the teardown of its thread has not ended
  const teardown = new BroadcastChannel('endsLate');
  const end = (): boolean => {
    teardown.postMessage('end'); // again and again: the thread may not listen yet
    return isClosed;
  };
  await expect.poll(end, { timeout: 60_000 }).toBe(true);
  teardown.close();
  await scene.close();
  await expect.poll(timers, { timeout: 5_000 }).toBe(0);
});
