/**
 * One run holds a cluster. Who has lost it writes nothing any more, and is told so by whatever it
 * calls.
 */
// @module-tag nats
import { Kvm } from '@nats-io/kv';
import { Objm } from '@nats-io/obj';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { Checkpoint, type ClusterCoordinator } from 'allstop/cluster';
import { NatsResults } from 'allstop/nats';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { someChunk } from '../../support/long-operations.ts';
import { diagnose } from '../../support/nats-doctor.ts';
import { NatsScene, works } from '../../support/nats-scene.ts';
import { untilReport } from '../../support/not-ready.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { Visits } from '../../support/visits.ts';

const failedPrecondition = { code: 'ERR_ALLSTOP_FAILED_PRECONDITION' };

let scene: NatsScene;
let nats: NatsConnection;
let proxy: TcpProxy;
const visits = new Visits();

beforeEach(async () => {
  await visits.open();
  scene = await NatsScene.open();
  proxy = await scene.proxy();
  nats = await connect({ servers: scene.server.address });
});
afterEach(async () => {
  await scene.close();
  await nats.close();
  await visits.close();
});

/** Resolves when the run has been told that another has the cluster, by whatever it waits for. */
async function told(cluster: ClusterCoordinator): Promise<void> {
  await expect
    .poll(() => cluster.join().catch((error: unknown) => error), { timeout: 60_000 })
    .toMatchObject(failedPrecondition);
}

describe('a run that was taken over', () => {
  const names = async (): Promise<string[]> => {
    const objects = await (await new Objm(nats).open('b')).list();
    return objects.map(({ name }) => name);
  };

  it('while it saved writes no checkpoint', { timeout: 120_000 }, async () => {
    const older = scene.coordinator({ servers: proxy.address, minWorkers: 0 });
    await older.ready();
    const state = (): Uint8Array => new Uint8Array(20_000_000);
    const save = new Checkpoint(older, { bucket: 'b', state }).save(1);
    save.catch(() => {});
    await someChunk(nats, 'b');
    proxy.swallow();
    expect(await names()).toEqual([]);
    const newer = scene.coordinator({ minWorkers: 0 });
    const saved = await new Checkpoint(newer, { bucket: 'b' }).save(2);
    proxy.restore();
    await expect(save).rejects.toMatchObject(failedPrecondition);
    expect((await names()).map((name) => `b/${name}`)).toEqual([saved]);
    expect(await new Checkpoint(newer, { bucket: 'b' }).restoreLatest()).toBe(2);
    await expect(new Checkpoint(older, { bucket: 'b' }).restoreLatest()).rejects.toMatchObject(
      failedPrecondition,
    );
  });

  it('while a result waited to be stored does not store it', { timeout: 120_000 }, async () => {
    const results = new NatsResults({ servers: proxy.address, bucket: 'r' });
    const older = scene.coordinator({}, { results });
    scene.spawn();
    await older.ready();
    const run = older.run('holdAndSay', [visits.path, 'a'], { key: 'k' });
    run.catch(() => {});
    const visit = await visits.next('a');
    proxy.swallow();
    visit.pass();
    await expect.poll(() => older.stats().inFlight, { timeout: 30_000 }).toBe(0);
    const newer = scene.coordinator();
    await works(newer);
    await told(older);
    proxy.restore();
    await expect(run).rejects.toMatchObject(failedPrecondition);
    const kv = await new Kvm(nats).open('r');
    const keys: string[] = [];
    for await (const key of await kv.keys()) keys.push(key);
    expect(keys).toEqual([]);
  });
});

it('a run that ends while it takes the cluster leaves no key that names it as living', async () => {
  const states: boolean[] = [];
  let written = (): void => {};
  const isWritten = new Promise<void>((resolve) => {
    written = resolve;
  });
  nats.subscribe('$KV.allstop_test.run', {
    callback: (_error, message) => {
      states.push('ended' in message.json<object>());
      written();
    },
  });
  await nats.flush();
  proxy.latencyMs = 50; // it has not heard by then that the key is its own
  const cluster = scene.coordinator({ servers: proxy.address, minWorkers: 0 });
  await isWritten;
  await cluster.close();
  await nats.flush();
  expect(states).toEqual([false, true]);
});

describe('two runs of one name', () => {
  it('that a partition has kept apart: the older is over when it has healed', {
    timeout: 120_000,
    tags: 'long',
  }, async () => {
    await scene.close();
    const apart = await NatsScene.openHubAndLeaf();
    scene = apart.scene;
    const jetstream = { domain: 'hub' };
    const older = scene.coordinator({ servers: apart.leaf.address, jetstream });
    scene.spawn({ servers: apart.leaf.address });
    await older.ready();
    apart.link.swallow();
    const newer = scene.coordinator({ servers: apart.hub.address, jetstream });
    await expect.poll(() => newer.stats().engine['connections'], { timeout: 30_000 }).toBe(1);
    await expect(newer.ready({ timeoutMs: 1_000 })).rejects.toThrow(/worker:0 unregistered/);
    await works(older);
    apart.link.restore();
    const healedAt = performance.now();
    await told(older);
    expect(performance.now() - healedAt).toBeLessThan(15_000);
    const checkpoint = new Checkpoint(older, { bucket: 'b' });
    const calls = [
      older.ready(),
      older.run('square', [1]),
      older.schedule('square', [1]),
      older.join(),
      older.done(),
      older.variable('v', 1),
      checkpoint.save(1),
      checkpoint.restoreLatest(),
    ];
    for (const settled of await Promise.allSettled(calls)) {
      expect(settled).toMatchObject({ reason: failedPrecondition });
    }
    await works(newer);
  });

  it('that use two JetStreams are told, each, and the worker stays with the newer', {
    tags: 'long',
    timeout: 120_000,
  }, async () => {
    await scene.close();
    const apart = await NatsScene.openHubAndLeaf({ ownDomains: true });
    scene = apart.scene;
    const warned: string[] = [];
    const onWarning = ({ message, code }: Error & { code?: string }): void => {
      if (code === 'ALLSTOP_TWO_COORDINATORS') warned.push(message);
    };
    process.on('warning', onWarning);
    const older = scene.coordinator({ servers: apart.leaf.address, minWorkers: 0 });
    await older.ready();
    const worker = scene.spawn({ servers: apart.leaf.address });
    await worker.next('serving');
    const newer = scene.coordinator({ servers: apart.hub.address });
    await works(newer);
    await expect.poll(() => warned.length, { timeout: 30_000 }).toBe(2);
    process.off('warning', onWarning);
    expect(warned.toSorted((one) => (one.includes('newer') ? -1 : 1))).toEqual([
      expect.stringContaining('which is newer'),
      expect.stringContaining('which is older'),
    ]);
    await works(newer);
    expect(worker.events.filter(({ event }) => event === 'session')).toHaveLength(2);
  });
});

describe('a run that finds the cluster held', () => {
  it('and refuses, fails at once and names the holder; after its end it begins', async () => {
    const holder = scene.coordinator({ minWorkers: 0 });
    await holder.ready();
    const late = scene.coordinator({ minWorkers: 0, onHeld: 'refuse' });
    const refused = {
      ...failedPrecondition,
      message: expect.stringContaining(`pid ${process.pid}`),
    };
    await expect(late.ready()).rejects.toMatchObject(refused);
    await expect(late.run('square', [1])).rejects.toMatchObject(refused);
    await holder.ready();
    await holder.close();
    const next = scene.coordinator({ minWorkers: 0, onHeld: 'refuse' });
    await next.ready();
  });

  it('and refuses, begins if the holder is gone without a word', { timeout: 60_000 }, async () => {
    const holder = scene.coordinator({ servers: proxy.address, minWorkers: 0 });
    await holder.ready();
    proxy.swallow();
    const next = scene.coordinator({ minWorkers: 0, onHeld: 'refuse' });
    await next.ready();
    proxy.restore();
    await told(holder);
  });

  it('and stands by, waits for its end, and kills nothing', { timeout: 60_000 }, async () => {
    scene.spawn();
    const holder = scene.coordinator();
    const running = holder.run('holdAndSay', [visits.path, 'a']);
    const visit = await visits.next('a');
    const next = scene.coordinator({ onHeld: 'standBy' });
    await untilReport(next, ({ engine }) => engine.phase === 'standby');
    const square = next.run('square', [3]);
    square.catch(() => {});
    const another = scene.coordinator({ onHeld: 'standBy', minWorkers: 0 });
    await untilReport(another, ({ engine }) => engine.phase === 'standby');
    visit.pass();
    expect(await running).toMatchObject({ attempt: 1 });
    await holder.close();
    // Of the two that stand by, one has it.
    const first = await Promise.race([
      next.ready().then(() => next),
      another.ready().then(() => another),
    ]);
    await first.close().catch(() => {});
    if (first === next) await expect(square).rejects.toThrow();
    else expect(await square).toBe(9);
  });

  it('and stands by, is no older one to doctor', async () => {
    await scene.coordinator({ minWorkers: 0 }).ready();
    const next = scene.coordinator({ minWorkers: 0, onHeld: 'standBy' });
    await untilReport(next, ({ engine }) => engine.phase === 'standby');
    const { checks } = await diagnose(scene.server.address, 'test');
    const { detail } = checks.find(({ name }) => name === 'coordinator') ?? {};
    expect(detail).toMatch(/ago: holds the cluster; 1 more stands by$/);
  });

  it('and stands by, begins when the holder is lost', {
    timeout: 60_000,
    tags: 'long',
  }, async () => {
    const holder = scene.coordinator({ servers: proxy.address, minWorkers: 0 });
    await holder.ready();
    const next = scene.coordinator({ minWorkers: 0, onHeld: 'standBy' });
    await untilReport(next, ({ engine }) => engine.phase === 'standby');
    proxy.swallow();
    await next.ready();
    proxy.restore();
    await told(holder);
  });
});

it('a run that stands by and has lost its servers is closed at once', async () => {
  const since = new Date().toISOString();
  const run = { run: 'dead', token: Date.now(), host: 'h', pid: 1, since };
  const bucket = await new Kvm(nats).create('allstop_test', { history: 1 });
  await bucket.put('run', JSON.stringify(run));
  const asked = new Promise<void>((resolve) => {
    nats.subscribe('allstop.test.who', { callback: () => resolve() });
  });
  await nats.flush();
  const cluster = scene.coordinator({ servers: proxy.address, onHeld: 'standBy' });
  await asked; // whether the other run lives, for five seconds
  await proxy.close();
  await untilReport(cluster, ({ engine }) => engine.phase === 'connecting');
  // From now on no timer fires: a close that waited for a limit would never end.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  await cluster.close();
});
