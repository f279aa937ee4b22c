/** Options of the official client, secrets that are renewed, and addresses that servers advertise. */
// @module-tag nats
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { usernamePasswordAuthenticator } from '@nats-io/transport-node';
import { UnavailableError } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsResults } from 'allstop/nats';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { NatsScene, works } from '../../support/nats-scene.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { untilReport } from '../../support/not-ready.ts';

const withPassword = (pass: string): string =>
  `authorization { users: [{ user: app, password: "${pass}" }] }`;

let scene: NatsScene;
afterEach(() => scene.close());

describe('a secret that was changed', () => {
  it('is asked for at every connection, after an error, too', { timeout: 60_000 }, async () => {
    scene = await NatsScene.open(withPassword('a1'));
    let pass = 'a1';
    let calls = 0;
    const connect = async () => {
      calls += 1;
      // Not the error of a server, and not allstop's own word that all is over.
      const code = 'ECONNREFUSED';
      if (calls === 1) throw Object.assign(new UnavailableError('the vault is asleep'), { code });
      return { authenticator: usernamePasswordAuthenticator('app', pass) };
    };
    const cluster = scene.coordinator({ connect, minWorkers: 0 });
    await untilReport(
      cluster,
      ({ engine: { cause = '', remedy } }) =>
        /^the function `connect` .*the vault is asleep/.test(cause) &&
        remedy === 'see why that function fails: no server was asked',
    );
    await cluster.ready();
    scene.server.reconfigure(withPassword('b2'));
    await untilReport(cluster, ({ engine }) => engine.phase === 'connecting');
    pass = 'b2';
    await cluster.ready();
    expect(calls).toBeGreaterThan(2);
  });

  it('is read from its file anew, by a worker', { timeout: 60_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'allstop-secret-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'pass');
    writeFileSync(file, 'a1\n');
    scene = await NatsScene.open(withPassword('a1'));
    let pass = 'a1';
    const cluster = scene.coordinator({ connect: () => ({ user: 'app', pass }) });
    const env = { ALLSTOP_NATS_USER: 'app', ALLSTOP_NATS_PASS_FILE: file };
    const worker = scene.spawn({ env });
    await works(cluster);
    const down = worker.next('disconnected');
    rmSync(file);
    scene.server.reconfigure(withPassword('b2'));
    await down;
    await expect
      .poll(() => worker.events.at(-1), { timeout: 30_000 })
      .toMatchObject({
        event: 'disconnected',
        cause: expect.stringMatching(/ALLSTOP_NATS_PASS_FILE cannot be read: ENOENT/),
        remedy: 'see that the file is there, and that this user may read it',
      });
    pass = 'b2';
    const up = worker.next('connected');
    writeFileSync(file, 'b2\n');
    await up;
    await works(cluster);
  });
});

it('addresses that a server advertises come after the configured ones', {
  timeout: 120_000,
  tags: 'long',
}, async () => {
  // Nobody answers there: each attempt costs the client three seconds.
  const silent = createServer((socket) => socket.on('error', () => {}));
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  scene = await NatsScene.openThree(`client_advertise: "127.0.0.1:${port}"`);
  const proxy = await scene.proxy();
  const cluster = scene.coordinator({ servers: proxy.address, minWorkers: 0 });
  await cluster.ready();
  for (let cut = 2; cut <= 9; cut += 1) {
    const cutAt = performance.now();
    proxy.restore(); // cuts what is there
    await expect.poll(() => cluster.stats().engine['connections'], { timeout: 30_000 }).toBe(cut);
    expect(performance.now() - cutAt).toBeLessThan(2_500);
  }
});

describe('results whose JetStream', () => {
  const module = new URL('../../fixtures/keyed-tasks.mjs', import.meta.url);

  it('is not enabled are told so at once', async () => {
    scene = new NatsScene();
    scene.servers.push(await NatsServer.start('', { jetstream: false }));
    const results = new NatsResults({ servers: scene.addresses, bucket: 'r' });
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), {
      results,
    });
    const began = performance.now();
    await expect(cluster.run('report', ['', ''], { key: 'a' })).rejects.toThrow(/has no JetStream/);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('is away for longer than a moment are kept', { timeout: 120_000, tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const folder = await mkdtemp(join(tmpdir(), 'allstop-away-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const results = new NatsResults({ servers: scene.addresses, bucket: 'r' });
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), {
      results,
    });
    const log = join(folder, 'log');
    const gate = join(folder, 'gate');
    const run = cluster.run('noteAtGate', [log, 'x', gate], { key: 'a' });
    await expect.poll(() => cluster.stats().inFlight, { timeout: 30_000 }).toBe(1);
    await scene.server.kill();
    writeFileSync(gate, '');
    await expect.poll(() => cluster.stats().inFlight, { timeout: 30_000 }).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 8_000)); // the fault itself
    await scene.server.restart();
    expect(await run).toBe('x');
  });

  it('elects leaders again and again are kept', { timeout: 180_000, tags: 'long' }, async () => {
    scene = await NatsScene.openThree();
    const results = new NatsResults({ servers: scene.addresses, bucket: 'r', replicas: 3 });
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }), {
      results,
    });
    const folder = await mkdtemp(join(tmpdir(), 'allstop-elect-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const log = join(folder, 'log');
    const calls: Promise<unknown>[] = [];
    for (const server of scene.servers) {
      for (let n = 0; n < 100; n += 1) {
        const line = `${scene.servers.indexOf(server)}-${n}`;
        calls.push(cluster.run('note', [log, line], { key: line }));
      }
      await calls.at(-90);
      await server.kill();
      await server.restart();
    }
    expect((await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected')).toEqual(
      [],
    );
  });
});
