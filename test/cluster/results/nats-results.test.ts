/** NatsResults: results of calls with a key, in JetStream. */

import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { Objm } from '@nats-io/obj';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsResults, type NatsResultsOptions, NatsStrategy } from 'allstop/nats';
import { LinkProxy } from 'allstop/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hoursPass, someChunk } from '../../support/long-operations.ts';
import { NatsServer } from '../../support/nats-server.ts';

const module = new URL('../../fixtures/keyed-tasks.mjs', import.meta.url);

describe('NatsResults', () => {
  test.each<[string, Partial<NatsResultsOptions> & Record<string, unknown>, RegExp]>([
    ['a bucket', { bucket: undefined as never }, /options.bucket/],
    ['a valid name', { bucket: 'a.b' }, /name of a bucket/],
    ['servers', { servers: undefined as never }, /options.servers/],
    ['a valid address', { servers: 'http://x' }, /not a valid server address/],
    ['a ttl that servers take', { ttlMs: 1 }, /options.ttlMs/],
    ['known options', { ttl: 5 }, /Did you mean 'ttlMs'/],
    ['one way to log in', { token: 'a', user: 'b' }, /Only one of/],
  ])('needs %s', (_what, options, message) => {
    const given = { servers: 'localhost', bucket: 'b', ...options } as NatsResultsOptions;
    expect(() => new NatsResults(given)).toThrow(message);
  });

  test('shows no credentials', async () => {
    const { inspect } = await import('node:util');
    const results = new NatsResults({ servers: 'nats://u:secret@localhost', bucket: 'b' });
    expect(inspect(results, { showHidden: true })).not.toContain('secret');
  });

  test('fails a call with an UnavailableError that names the server, if there is none', async () => {
    const results = new NatsResults({ servers: '127.0.0.1:1', bucket: 'b', patienceMs: 500 });
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), {
      results,
    });
    await expect(cluster.run('first', ['', 1], { key: 'a' })).rejects.toMatchObject({
      name: 'UnavailableError',
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining('127.0.0.1:1'),
    });
    expect(cluster.stats()).toMatchObject({ completed: 0, failed: 0 });
  });
});

describe('results in JetStream', { tags: 'nats' }, () => {
  let server: NatsServer;
  let nats: NatsConnection;
  let folder: string;
  let log: string;
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
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'allstop-results-'));
    log = join(folder, 'log');
    writeFileSync(log, '');
    bucket = `results-${++count}`;
  });
  afterEach(() => rm(folder, { recursive: true }));

  const start = (options: Partial<NatsResultsOptions> = {}): ClusterCoordinator =>
    new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), {
      results: new NatsResults({ servers: server.address, bucket, ...options }),
    });
  const runs = (): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const make = (cluster: ClusterCoordinator, bytes: number): Promise<Uint8Array> =>
    cluster.run('make', [log, String(bytes)], { key: String(bytes) });
  const isRight = (value: Uint8Array, bytes: number): boolean =>
    Buffer.from(value).equals(Buffer.alloc(bytes, 7));

  test('are found by the next run, small ones in the bucket, large ones as objects', async () => {
    const sizes = [1, 500_000, 600_000, 5_000_000];
    for (let run = 0; run < 2; run++) {
      await using cluster = start();
      const values = await Promise.all(sizes.map((bytes) => make(cluster, bytes)));
      for (const [at, bytes] of sizes.entries()) {
        expect(isRight(values[at] as Uint8Array, bytes), String(bytes)).toBe(true);
      }
    }
    expect(runs().toSorted()).toEqual(sizes.map(String).toSorted());
    const objects = await (await new Objm(nats).open(bucket)).list();
    expect(objects.map(({ size }) => size > 512 * 1024)).toEqual([true, true]);
    const kv = await new Kvm(nats).open(bucket);
    expect((await kv.status()).values).toBe(4);
  });

  test('share what two programs have computed, and tell arguments apart', async () => {
    await using one = start();
    await using other = start();
    await make(one, 5);
    await make(other, 5);
    expect(runs()).toEqual(['5']);
    await expect(other.run('make', [log, '6'], { key: '5' })).rejects.toMatchObject({
      name: 'InvalidArgumentError',
    });
  });

  test('need a max_payload with room for them', async () => {
    const small = await NatsServer.start('max_payload: 1KB');
    try {
      await using cluster = start({ servers: small.address });
      await expect(make(cluster, 5)).rejects.toMatchObject({
        name: 'UnavailableError',
        message: expect.stringMatching(/max_payload of 1024 bytes is too small.*2048 or more/),
      });
    } finally {
      await small.close();
    }
  });

  test('are forgotten after ttlMs', async () => {
    await using cluster = start({ ttlMs: 500 });
    await make(cluster, 5);
    await make(cluster, 700_000);
    const manager = await jetstreamManager(nats);
    for (const stream of [`KV_${bucket}`, `OBJ_${bucket}`]) {
      expect((await manager.streams.info(stream)).config.max_age).toBe(500 * 1_000_000);
    }
    const kv = await new Kvm(nats).open(bucket);
    await expect.poll(async () => (await kv.status()).values, { timeout: 30_000 }).toBe(0);
    await make(cluster, 5);
    expect(runs()).toEqual(['5', '700000', '5']);
  });

  test('that are damaged are run again', async () => {
    {
      await using cluster = start();
      await make(cluster, 5);
      await make(cluster, 700_000);
    }
    const kv = await new Kvm(nats).open(bucket);
    const objects = await new Objm(nats).open(bucket);
    const [object] = await objects.list();
    for await (const key of await kv.keys()) {
      if (key !== object?.name) await kv.put(key, 'something else, from another program');
    }
    await objects.delete(object?.name as string);
    await using cluster = start();
    expect(isRight(await make(cluster, 5), 5)).toBe(true);
    expect(isRight(await make(cluster, 700_000), 700_000)).toBe(true);
    expect(runs()).toHaveLength(4);
    await make(cluster, 700_000);
    expect(runs()).toHaveLength(4);
  });

  test('survive a restart of the server in the middle', async () => {
    const own = await NatsServer.start();
    const options = { servers: own.address };
    await using cluster = start(options);
    await make(cluster, 5);
    await own.kill();
    const call = make(cluster, 6);
    await own.restart();
    expect(isRight(await call, 6)).toBe(true);
    await make(cluster, 5);
    expect(runs()).toEqual(['5', '6']);
    await cluster.close();
    await own.close();
  });

  test('are written again after a cut, however long the first attempt has taken', async () => {
    await using proxy = await LinkProxy.open({ to: server.address });
    await using cluster = start({ servers: proxy.url });
    await make(cluster, 5);
    proxy.setRate(400_000);
    const call = make(cluster, 600_000);
    await someChunk(nats, bucket);
    hoursPass();
    proxy.cut();
    proxy.setRate(Number.POSITIVE_INFINITY);
    proxy.restore();
    expect(isRight(await call, 600_000)).toBe(true);
    await make(cluster, 600_000);
    expect(runs()).toEqual(['5', '600000']);
  });

  test('fail the call when the bucket is gone or the server refuses, and say why', async () => {
    await using cluster = start();
    await make(cluster, 5);
    const manager = await jetstreamManager(nats);
    await manager.streams.delete(`KV_${bucket}`);
    await expect(make(cluster, 5)).rejects.toMatchObject({
      name: 'UnavailableError',
      message: expect.stringContaining(`bucket '${bucket}'`),
    });
    await make(cluster, 5); // it is made again
    expect(runs()).toEqual(['5', '5']);

    const small = await NatsServer.start('', { jetstream: false });
    await using without = start({ servers: small.address });
    await expect(make(without, 5)).rejects.toMatchObject({
      name: 'UnavailableError',
      message: expect.stringMatching(/JetStream/),
    });
    await without.close();
    await small.close();
  });

  test('without patience wait for the first connection all the same', async () => {
    await using cluster = start({ patienceMs: 0 });
    expect(isRight(await make(cluster, 5), 5)).toBe(true);
  });

  test('work with credentials, and with a NatsStrategy', async () => {
    const own = await NatsServer.start('authorization { user: "u", password: "p" }');
    const login = { servers: own.address, user: 'u', pass: 'p' };
    await using cluster = start(login);
    await make(cluster, 5);
    await using refused = start({
      servers: own.address,
      user: 'u',
      pass: 'wrong',
      patienceMs: 500,
    });
    await expect(make(refused, 5)).rejects.toMatchObject({
      name: 'UnavailableError',
      message: expect.stringContaining('credentials'),
    });
    const strategy = new NatsStrategy({ module, cluster: 'main', ...login });
    const results = new NatsResults({ bucket, ...login });
    const remote = new ClusterCoordinator(strategy, { results });
    // There is no worker, and none is needed for what is stored.
    expect(isRight(await make(remote, 5), 5)).toBe(true);
    await remote.close();
    await Promise.all([cluster.close(), refused.close()]);
    await own.close();
    expect(runs()).toEqual(['5']);
  });
});
