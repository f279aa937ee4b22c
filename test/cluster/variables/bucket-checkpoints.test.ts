/** Checkpoint in a bucket of JetStream: what a program saved is what any machine finds. */

import { jetstreamManager } from '@nats-io/jetstream';
import { Objm } from '@nats-io/obj';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { Checkpoint, ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { LinkProxy } from 'allstop/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hoursPass, someChunk } from '../../support/long-operations.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { warningsDuring } from '../../support/warnings.ts';

const module = new URL('../../fixtures/cluster-variables.mjs', import.meta.url);

describe('a checkpoint in a bucket', () => {
  test('needs the servers of a NatsStrategy, a valid name, and no folder beside it', async () => {
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
    const invalid = (message: RegExp): unknown =>
      expect.objectContaining({
        name: 'InvalidArgumentError',
        message: expect.stringMatching(message),
      });
    expect(() => new Checkpoint(cluster, { bucket: 'b' })).toThrow(invalid(/NatsStrategy/));
    const make = (options: object): unknown => Reflect.construct(Checkpoint, [cluster, options]);
    expect(() => make({ bucket: 'a.b' })).toThrow(invalid(/name of a bucket/));
    expect(() => make({ bucket: 'b', directory: 'd' })).toThrow(invalid(/Only one/));
    expect(() => make({ bucket: 1 })).toThrow(/options.bucket/);
  });

  test('fails with an UnavailableError that names the server, if there is none', async () => {
    const servers = '127.0.0.1:1';
    const strategy = new NatsStrategy({
      module,
      servers,
      cluster: 'c',
      minWorkers: 0,
      unavailableAfterMs: 500,
    });
    await using cluster = new ClusterCoordinator(strategy);
    const checkpoint = new Checkpoint(cluster, { bucket: 'b' });
    const unavailable = {
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringMatching(servers),
    };
    await Promise.all([
      expect(checkpoint.save(1)).rejects.toMatchObject(unavailable),
      expect(new Checkpoint(cluster, { bucket: 'b' }).restoreLatest()).rejects.toMatchObject(
        unavailable,
      ),
    ]);
  });
});

describe('checkpoints in JetStream', { tags: 'nats' }, () => {
  let server: NatsServer;
  let nats: NatsConnection;
  let bucket: string;
  let count = 0;
  beforeAll(async () => {
    server = await NatsServer.start();
    nats = await connect({ servers: server.address });
  });
  afterAll(async () => {
    await nats.close();
    await server.close();
  });
  beforeEach(() => {
    bucket = `checkpoints-${++count}`;
  });

  const start = (): ClusterCoordinator => {
    const servers = server.address;
    return new ClusterCoordinator(
      new NatsStrategy({ module, servers, cluster: `c${count}`, minWorkers: 0 }),
    );
  };
  /** All messages of the bucket, by subject. */
  const subjects = async (): Promise<Record<string, number>> => {
    const manager = await jetstreamManager(nats);
    const filter = { subjects_filter: `$O.${bucket}.>` };
    return (await manager.streams.info(`OBJ_${bucket}`, filter)).state.subjects ?? {};
  };
  const purge = async (filter: string): Promise<void> => {
    await (await jetstreamManager(nats)).streams.purge(`OBJ_${bucket}`, { filter });
  };

  test('give the state back to another run; the newest `keep` stay, and nothing else', async () => {
    const state = { epoch: 0, bytes: new Uint8Array(400_000) };
    {
      await using cluster = start();
      const checkpoint = new Checkpoint(cluster, { bucket, keep: 2, state: () => state });
      expect(await checkpoint.restoreLatest()).toBeUndefined();
      for (const step of [9, 4, 7, 5]) {
        state.epoch = step;
        state.bytes.fill(step);
        const at = await checkpoint.save(step);
        expect(at).toMatch(new RegExp(`^${bucket}/checkpoint-\\d{10}-${step}$`));
      }
    }
    const left = Object.keys(await subjects());
    expect(left.filter((subject) => subject.includes('.M.'))).toHaveLength(2);
    expect(left.filter((subject) => subject.includes('.C.'))).toHaveLength(2);
    await using cluster = start();
    const loaded: unknown[] = [];
    const load = (value: unknown): void => void loaded.push(value);
    expect(await new Checkpoint(cluster, { bucket, load }).restoreLatest()).toBe(5);
    const [{ epoch, bytes }, ...others] = loaded as [typeof state];
    expect([epoch, others]).toEqual([5, []]);
    expect(Buffer.from(bytes).equals(Buffer.alloc(400_000, 5))).toBe(true); // toEqual takes seconds
  });

  test('that are torn, damaged or foreign are skipped with a warning that names them', async () => {
    await using cluster = start();
    const bytes = new Uint8Array(400_000);
    let step = 0;
    const options = { bucket, keep: 20, state: () => [step, bytes] };
    const loaded: unknown[] = [];
    const load = ([saved]: any): void => void loaded.push(saved);
    const checkpoint = new Checkpoint(cluster, { ...options, load });
    for (step = 1; step <= 4; step++) await checkpoint.save(step);
    const objects = await new Objm(nats).open(bucket);
    const name = (at: number): string => `checkpoint-${String(at).padStart(10, '0')}-${at}`;
    // The first stays whole. Of the others: no bytes, other bytes, bytes too many, no description.
    const second = await objects.info(name(2));
    await purge(`$O.${bucket}.C.${second?.nuid}`);
    const third = await objects.getBlob(name(3));
    (third as Uint8Array)[200_000]! ^= 1;
    await objects.putBlob({ name: name(3) }, third);
    const fourth = await objects.info(name(4));
    nats.publish(`$O.${bucket}.C.${fourth?.nuid}`, 'more');
    await objects.putBlob({ name: name(5) }, new Uint8Array([1, 2, 3]));
    await objects.putBlob({ name: name(6) }, new Uint8Array(0));
    await objects.link(name(7), (await objects.info(name(1)))!);
    const metaOf = (each: string): string =>
      `$O.${bucket}.M.${Buffer.from(each).toString('base64url')}`;
    nats.publish(metaOf(name(8)), '{');
    await objects.putBlob({ name: 'readme' }, new Uint8Array([1]));
    await nats.flush();
    const warnings = await warningsDuring(async () => {
      expect(await checkpoint.restoreLatest()).toBe(1);
    });
    expect(loaded).toEqual([1]);
    const named = [8, 7, 6, 5, 4, 3, 2].map(name);
    expect(warnings).toHaveLength(named.length);
    for (const [at, warning] of warnings.entries()) {
      expect(warning).toMatchObject({
        code: 'ALLSTOP_CHECKPOINT',
        message: expect.stringContaining(`${bucket}/${named[at]} is skipped`),
      });
    }
    // The next save is the latest, whatever damaged ones are numbered.
    step = 9;
    await checkpoint.save(0);
    expect(await checkpoint.restoreLatest()).toBe(0);
    expect(loaded).toEqual([1, 9]);
  });

  test('begin again after a cut, however long the save has taken by then', async () => {
    await using proxy = await LinkProxy.open({ to: server.address });
    const strategy = new NatsStrategy({
      module,
      servers: proxy.url,
      cluster: `c${count}`,
      minWorkers: 0,
    });
    await using cluster = new ClusterCoordinator(strategy);
    await cluster.ready();
    const state = new Uint8Array(600_000);
    const loaded: unknown[] = [];
    const load = (value: unknown): void => void loaded.push(value);
    const checkpoint = new Checkpoint(cluster, { bucket, state: () => state, load });
    proxy.setRate(400_000);
    const saving = checkpoint.save(1);
    await someChunk(nats, bucket);
    hoursPass();
    proxy.cut();
    proxy.setRate(Number.POSITIVE_INFINITY);
    proxy.restore();
    await saving;
    expect(await checkpoint.restoreLatest()).toBe(1);
    expect(loaded).toHaveLength(1);
    expect(Buffer.from(loaded[0] as Uint8Array).equals(state)).toBe(true);
  });

  test('go on when the server is started again in the middle of saves', async () => {
    await using cluster = start();
    let step = 0;
    const checkpoint = new Checkpoint(cluster, { bucket, state: () => step, load: () => {} });
    for (step = 1; step <= 6; step++) {
      const saving = checkpoint.save(step);
      if (step === 3) {
        await server.kill();
        await server.restart();
      }
      await saving;
    }
    expect(await checkpoint.restoreLatest()).toBe(6);
  });
});
