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
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { someChunk } from '../../support/long-operations.ts';
import { NatsScene, works } from '../../support/nats-scene.ts';
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

/** Resolves when the run has been told that another has the cluster. */
const told = async (cluster: ClusterCoordinator): Promise<void> => {
  await expect(cluster.join()).rejects.toMatchObject(failedPrecondition);
};

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
    await expect.poll(() => older.stats().inFlight).toBe(0);
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
