// @module-tag nats
// @module-tag long
// What stops a cluster, provoked for real, and the sentence of `allstop doctor` that says so: each
// row of the table in docs/nats.md.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ClusterCoordinator, ClusterSpec } from 'allstop/cluster';
import { afterAll, afterEach, expect, it } from 'vitest';
import { doctor } from '../../support/nats-doctor.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { NatsServer } from '../../support/nats-server.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';
import { Program } from '../../support/program.ts';

const tasks = new URL('../../fixtures/cluster-nats-faults.mjs', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'allstop-problems-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A module of its own. @returns its URL */
function moduleOf(name: string, source: string): URL {
  const path = join(folder, name);
  writeFileSync(path, source);
  return pathToFileURL(path);
}

let scene: NatsScene;
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end();
  await scene?.close();
});

const worker = { expect: new ClusterSpec({ worker: ['127.0.0.1:2222'] }) };
const isQueued = async (cluster: ClusterCoordinator, count: number): Promise<void> => {
  await expect.poll(() => cluster.stats().queued, { timeout: 30_000 }).toBe(count);
};
const ignore = (): void => {};

/** Arranges the problem. `at`: the server, where the scene has none; `env`: the doctor's. */
type Problem = () => Promise<void | { at: string; env?: NodeJS.ProcessEnv }>;

const problems: Record<string, Problem> = {
  'no coordinator has been started': async () => {
    scene = await NatsScene.open();
  },
  'the coordinator was killed': async () => {
    scene = await NatsScene.open();
    const args = [tasks.href, scene.server.address, 'test'];
    const program = new Program('test/fixtures/nats-coordinator.mjs', args);
    scene.spawn();
    await program.writes(/ready/);
    program.child.kill('SIGKILL');
    await program.ended;
  },
  'no worker has been started': async () => {
    scene = await NatsScene.open();
    scene.coordinator(worker).ready().catch(ignore);
  },
  'the worker has another cluster name': async () => {
    scene = await NatsScene.open();
    scene.coordinator(worker).ready().catch(ignore);
    scene.spawn({ cluster: 'tset', task: 0 });
  },
  'the worker has another module': async () => {
    scene = await NatsScene.open();
    scene.coordinator(worker).ready().catch(ignore);
    scene.spawn({ module: moduleOf('other.mjs', 'export const f = () => 1;'), task: 0 });
  },
  'the import of the module throws': async () => {
    scene = await NatsScene.open();
    const module = moduleOf('throws.mjs', "import './missing.mjs';");
    scene
      .coordinator({ module, ...worker })
      .ready()
      .catch(ignore);
    scene.spawn({ module, task: 0 });
  },
  'the import of the module hangs': async () => {
    scene = await NatsScene.open();
    const module = moduleOf(
      'hangs.mjs',
      'setInterval(() => {}, 1e6); await new Promise(() => {});',
    );
    scene
      .coordinator({ module, ...worker })
      .ready()
      .catch(ignore);
    scene.spawn({ module, task: 0 });
  },
  'the worker is stopped (SIGSTOP), or hangs': async () => {
    scene = await NatsScene.open();
    await scene.start(1, {}, { ...worker, lostAfterMs: 60_000 });
    process.kill((scene.workers[0] as NatsWorker).pid, 'SIGSTOP');
  },
  'the worker was killed': async () => {
    scene = await NatsScene.open();
    await scene.start(1, {}, worker);
    await (scene.workers[0] as NatsWorker).kill();
  },
  'calls wait, and no worker is there': async () => {
    scene = await NatsScene.open();
    const cluster = scene.coordinator({ minWorkers: 0 });
    await cluster.ready();
    for (let n = 0; n < 24; n += 1) cluster.run('square', [n]).catch(ignore);
    await isQueued(cluster, 24);
  },
  'calls wait for a resource that no node has': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    cluster.run('square', [1], { resources: { gpu: 1 } }).catch(ignore);
    await isQueued(cluster, 1);
  },
  'a function computes for ever': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    for (let n = 0; n < 51; n += 1) cluster.run('compute', [1e9, undefined, n]).catch(ignore);
    await isQueued(cluster, 50);
  },
  'every call fails': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    for (let n = 0; n < 3; n += 1) await cluster.run('fail', ['no such file']).catch(ignore);
  },
  'a function kills its process': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    cluster.run('noteOrKill', [join(folder, 'log'), -1], { retries: 0 }).catch(ignore);
    await expect.poll(() => cluster.stats().failed, { timeout: 30_000 }).toBe(1);
  },
  'no server runs there': async () => ({ at: '127.0.0.1:1' }),
  'the password is wrong': async () => {
    const server = await NatsServer.start('authorization { user: u, password: "p" }');
    ending.push(() => server.close());
    return { at: server.address, env: { ALLSTOP_NATS_USER: 'u', ALLSTOP_NATS_PASS: 'x' } };
  },
  'the server has no JetStream': async () => {
    const server = await NatsServer.start('', { jetstream: false });
    ending.push(() => server.close());
    return { at: server.address };
  },
  'the name of the server is wrong': async () => ({ at: 'no-such-host.invalid:4222' }),
  'another port than NATS': async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ending.push(() => server.close());
    return { at: `127.0.0.1:${(server.address() as AddressInfo).port}` };
  },
  'setup throws': async () => {
    scene = await NatsScene.open();
    const module = moduleOf(
      'setup.mjs',
      "export const open = () => { throw new Error('no disk'); }",
    );
    scene
      .coordinator({ module, ...worker })
      .ready()
      .catch(ignore);
    scene.spawn({ module, task: 0, setup: 'open' });
  },
  'the run was stopped': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    cluster.coordinator.requestStop(new RangeError('boom'));
    ending.push(() => cluster.coordinator.join().catch(ignore));
  },
  'a function fails, and is tried again': async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const again = { retryOn: () => true, retryDelayMs: 600_000 };
    cluster.run('fail', ['no such file'], again).catch(ignore);
  },
  'two coordinators in two JetStreams': async () => {
    const { scene: both, hub, leaf } = await NatsScene.openHubAndLeaf({ ownDomains: true });
    scene = both;
    for (const { address } of [hub, leaf]) {
      await scene.coordinator({ servers: address, minWorkers: 0 }).ready();
    }
  },
};

const page = readFileSync(new URL('../../../docs/nats.md', import.meta.url), 'utf8');
const [, rest = ''] = page.split('## Problems, and what doctor says\n');
const rows = [...(rest.split('\n## ')[0] ?? '').matchAll(/^\| (.+?) \| `(.+)` \|$/gm)];
const sentences = new Map(rows.map(([, name = '', sentence = '']) => [name, sentence]));

it('the page has a row for each', () => {
  expect([...sentences.keys()]).toEqual(Object.keys(problems));
});

it.each(Object.entries(problems))('%s', { timeout: 120_000 }, async (name, provoke) => {
  const { at = scene?.server.address, env = {} } = (await provoke()) ?? {};
  const args = ['--servers', at as string, '--cluster', 'test'];
  const parts = (sentences.get(name) ?? '')
    .split('…')
    .map((part) => part.replaceAll(/[$()*+./?[\\\]^{|}-]/g, String.raw`\$&`));
  const said = new RegExp(parts.join('.*'));
  await expect
    .poll(async () => (await doctor(args, env)).stdout.replaceAll(/\s+/g, ' '), { timeout: 60_000 })
    .toMatch(said);
});
