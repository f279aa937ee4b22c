/** Workers that are away for a while, and come back to what they run. */
// @module-tag nats
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';
import { untilReport } from '../../support/not-ready.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { Visits } from '../../support/visits.ts';

let scene: NatsScene;
let proxy: TcpProxy;
const visits = new Visits();

beforeEach(async () => {
  await visits.open();
  scene = await NatsScene.open();
  proxy = await scene.proxy();
});
afterEach(async () => {
  await scene.close();
  await visits.close();
});

const nodesLost = (cluster: ReturnType<NatsScene['coordinator']>): unknown =>
  cluster.stats().engine['nodesLost'];

describe('a worker that is away', () => {
  it('for less than lostAfterMs goes on with what it runs', async () => {
    const cluster = scene.coordinator({ lostAfterMs: 30_000 });
    const worker = scene.spawn({ servers: proxy.address });
    await cluster.ready();
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const visit = await visits.next('a');
    proxy.swallow();
    await untilReport(cluster, ({ tasks }) => tasks[0]?.phase === 'silent');
    proxy.restore();
    await untilReport(cluster, ({ ready }) => ready);
    visit.pass();
    expect(await value.fetch()).toMatchObject({ pid: worker.pid, attempt: 1 });
    expect(nodesLost(cluster)).toBe(0);
  });

  it('for less loses nothing to another of its host that joins meanwhile', {
    tags: 'long',
  }, async () => {
    const cluster = scene.coordinator({ lostAfterMs: 30_000 });
    const worker = scene.spawn({ servers: proxy.address });
    await cluster.ready();
    const run = cluster.run('holdAndSay', [visits.path, 'a'], { retries: 0 });
    run.catch(() => {});
    const visit = await visits.next('a');
    worker.child.kill('SIGSTOP'); // it cannot connect again
    proxy.restore();
    await untilReport(cluster, ({ tasks }) => tasks[0]?.phase === 'silent');
    const other = scene.spawn();
    await eventually(() => cluster.workers[0]?.pid === other.pid);
    await cluster.ready();
    worker.child.kill('SIGCONT');
    visit.pass();
    expect(await run).toMatchObject({ pid: worker.pid, attempt: 1 });
    await eventually(() => cluster.workers.some(({ pid }) => pid === worker.pid));
  });

  it('for longer, and alone, goes on, too: nothing is run twice', async () => {
    const cluster = scene.coordinator({ lostAfterMs: 1_000 });
    const worker = scene.spawn({ servers: proxy.address });
    await cluster.ready();
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const visit = await visits.next('a');
    proxy.swallow();
    await eventually(() => cluster.workers[0]?.state === 'lost');
    expect(value.state).toBe('pending');
    proxy.restore();
    await eventually(() => cluster.workers[0]?.state === 'busy');
    visit.pass();
    expect(await value.fetch()).toMatchObject({ pid: worker.pid, attempt: 1 });
    expect(visits.names).toEqual(['a']);
    expect(cluster.workers).toMatchObject([{ index: 0, pid: worker.pid, completed: 1 }]);
    expect(cluster.stats()).toMatchObject({ retried: 0 });
  });

  it('for longer: the first result wins, and the other attempt is cancelled', async () => {
    const cluster = scene.coordinator({ lostAfterMs: 1_000 }, { cancelGraceMs: 100 });
    const far = scene.spawn({ servers: proxy.address, task: 0 });
    await cluster.ready();
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const first = await visits.next('a');
    const near = scene.spawn({ task: 1 });
    await near.next('session');
    proxy.swallow();
    const second = await visits.next('a'); // the other worker runs it again
    first.pass(); // its result is offered when the connection is back
    proxy.restore();
    expect(await value.fetch()).toMatchObject({ pid: far.pid, attempt: 1 });
    await second.left;
    await eventually(() => cluster.workers.every(({ state }) => state === 'idle'));
    expect(cluster.workers.map(({ completed }) => completed)).toEqual([1, 0]);
    await cluster.join();
  });
});

/** `go`: what has to be undone 5 s later. */
const blips: [string, { near: boolean; go(node: NatsWorker): () => void }][] = [
  [
    'a node without connection',
    {
      near: false,
      go: () => {
        proxy.swallow();
        return () => proxy.restore();
      },
    },
  ],
  [
    'a node that is stopped',
    {
      near: false,
      go: (node) => {
        node.child.kill('SIGSTOP');
        return () => node.child.kill('SIGCONT');
      },
    },
  ],
  [
    'a coordinator without connection',
    {
      near: true,
      go: () => {
        proxy.swallow();
        return () => proxy.restore();
      },
    },
  ],
];

describe.each(blips)('%s for 5 s', { tags: 'long' }, (_, { near, go }) => {
  it('has nothing that ran run again, though another node is idle', async () => {
    const cluster = scene.coordinator({
      servers: near ? proxy.address : scene.server.address,
      minWorkers: 2,
      lostAfterMs: 10_000,
    });
    const far = near ? {} : { servers: proxy.address };
    const node = scene.spawn({ task: 0, slots: 2, ...far });
    scene.spawn({ task: 1, slots: 2 });
    await cluster.ready();
    const running = ['a', 'b'].map((name) =>
      cluster.run('holdAndSay', [visits.path, name], { worker: 0 }),
    );
    running.push(cluster.run('holdAndSay', [visits.path, 'c'], { worker: 1 }));
    const all = [await visits.next('a'), await visits.next('b'), await visits.next('c')];
    const undo = go(node);
    await new Promise((resolve) => setTimeout(resolve, 5_000)); // how long the fault lasts
    undo();
    for (const visit of all) visit.pass();
    for (const result of await Promise.all(running)) expect(result).toMatchObject({ attempt: 1 });
    expect(visits.names.toSorted()).toEqual(['a', 'b', 'c']);
    expect(cluster.stats()).toMatchObject({ retried: 0, engine: { nodesLost: 0 } });
  });
});

it.each(blips.slice(0, 2))(
  '%s for 5 s, among many short functions: each runs once',
  {
    tags: 'long',
  },
  async (_, { go }) => {
    const COUNT = 8_000; // of which some are always sent in advance
    const folder = mkdtempSync(join(tmpdir(), 'allstop-blip-'));
    const lines = join(folder, 'lines');
    const cluster = scene.coordinator({ lostAfterMs: 10_000, minWorkers: 2 });
    const node = scene.spawn({ task: 0, servers: proxy.address });
    scene.spawn({ task: 1 });
    await cluster.ready();
    const all = [...Array(COUNT).keys()].map((n) => cluster.run('compute', [1, lines, n]));
    await all[COUNT / 8];
    const undo = go(node);
    await new Promise((resolve) => setTimeout(resolve, 5_000)); // how long the fault lasts
    undo();
    await Promise.all(all);
    const ran = readFileSync(lines, 'utf8').trim().split('\n');
    expect(ran).toHaveLength(COUNT);
    expect(new Set(ran).size).toBe(COUNT);
    rmSync(folder, { recursive: true });
  },
);

it('a node whose module computes for long while it is imported keeps its session', {
  tags: 'long',
}, async () => {
  const cluster = scene.coordinator({ lostAfterMs: 1_000 });
  const worker = scene.spawn({ slots: 4, env: { ALLSTOP_TEST_IMPORT_MS: '4000' } });
  await cluster.ready();
  expect(nodesLost(cluster)).toBe(0);
  expect(worker.events.filter(({ event }) => event === 'session')).toHaveLength(1);
});

it('a server that hangs for longer than lostAfterMs is no fault of a worker', async () => {
  const cluster = scene.coordinator({ lostAfterMs: 1_000 });
  scene.spawn();
  await cluster.ready();
  const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  await scene.server.kill('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // two probes are missed
  await scene.server.kill('SIGCONT');
  visit.pass();
  expect(await value.fetch()).toMatchObject({ attempt: 1 });
  expect(nodesLost(cluster)).toBe(0);
});

it('a server that hangs between a probe and its reply is no fault of a worker', {
  tags: 'long',
}, async () => {
  // Three missed probes: while the worker is stopped and the server answers, a second may pass.
  const cluster = scene.coordinator({ lostAfterMs: 3_000 });
  const worker = scene.spawn();
  await cluster.ready();
  const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  const { port } = scene.server;
  const witness = await connect({ servers: `127.0.0.1:${port}` });
  const subscription = witness.subscribe('allstop.test.node.*', { max: 1 });
  await witness.flush(); // the witness sees every probe that the stopped worker does not answer
  worker.child.kill('SIGSTOP'); // so that the reply comes after the server's stop
  for await (const message of subscription) expect(message.string()).toContain('"probe"');
  await scene.server.kill('SIGSTOP');
  worker.child.kill('SIGCONT');
  await new Promise((resolve) => setTimeout(resolve, 5_000)); // how long the server hangs
  await scene.server.kill('SIGCONT');
  await witness.close();
  visit.pass();
  expect(await value.fetch()).toMatchObject({ attempt: 1 });
  expect(nodesLost(cluster)).toBe(0);
});

it('functions do not see the credentials of their worker', { tags: 'long' }, async () => {
  const cluster = scene.coordinator();
  const names = ['USER', 'PASS', 'CA_FILE'].map((name) => `ALLSTOP_NATS_${name}`);
  scene.spawn({ env: { ALLSTOP_NATS_USER: 'worker', ALLSTOP_NATS_PASS: 'open sesame' } });
  const values = await Promise.all(
    names.map(async (name) => (await cluster.schedule('variable', [name])).fetch()),
  );
  expect(values).toEqual([undefined, undefined, undefined]);
});

it('a definition takes the place of the hash of the module file', { tags: 'long' }, async () => {
  const cluster = scene.coordinator({ definition: 'v1.2' });
  const old = scene.spawn({ definition: 'v1.1' });
  expect(await old.next('refused')).toMatchObject({
    phase: 'definition-mismatch',
    why: expect.stringContaining('the worker has the definition v1.1, the coordinator'),
  });
  scene.spawn({ definition: 'v1.2' });
  await cluster.ready();
});

describe('a worker whose module file changes', () => {
  const fixture = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);

  /** The module file of the coordinator, and a copy, which is the worker's. */
  function deployed(text: string): { here: URL; there: URL } {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-module-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [here, there] = ['here', 'there'].map((name) => {
      mkdirSync(join(folder, name));
      const path = join(folder, name, 'module.mjs');
      writeFileSync(path, text);
      return pathToFileURL(path);
    }) as [URL, URL];
    return { here, there };
  }

  const textOf = (version: string): string =>
    `export * from '${fixture.href}'; export const version = () => '${version}';`;

  it('starts no thread with it: it ends what it runs, and is then refused', async () => {
    const { here, there } = deployed(textOf('v1'));
    const cluster = scene.coordinator({ module: here, minWorkers: 1 });
    const worker = scene.spawn({ module: there, slots: 2 });
    const [changed, refused] = [worker.next('module-changed'), worker.next('refused')];
    const held = cluster.run('hold', [visits.path, 'a']);
    const visit = await visits.next('a');
    expect(await cluster.run('version')).toBe('v1');
    writeFileSync(there, textOf('v2'));
    await cluster.run('answerAndDie');
    await changed;
    const waiting = cluster.run('version');
    visit.pass('well');
    expect(await held).toBe('well');
    expect(await refused).toMatchObject({ phase: 'definition-mismatch' });
    writeFileSync(there, textOf('v1'));
    expect(await waiting).toBe('v1');
  });

  it('while a thread imports it runs no function on that thread', { tags: 'long' }, async () => {
    const { here, there } = deployed(
      `import { writeFileSync } from 'node:fs';
      const { CHANGED } = process.env;
      if (CHANGED) writeFileSync(new URL(import.meta.url), "export const version = () => 'v2'");
      export const version = () => 'v1';`,
    );
    const cluster = scene.coordinator({ module: here, minWorkers: 1 });
    const value = cluster.run('version');
    const changing = scene.spawn({ module: there, env: { CHANGED: 'yes' } });
    expect(await changing.next('refused')).toMatchObject({ phase: 'definition-mismatch' });
    expect(changing.events.map(({ event }) => event)).toContain('module-changed');
    scene.spawn({ module: here });
    expect(await value).toBe('v1');
  });
});

it('the figures of a node are in report and workers', async () => {
  const cluster = scene.coordinator();
  scene.spawn();
  await untilReport(cluster, ({ tasks }) => tasks[0]?.health !== undefined);
  const figures = { roundTripMs: expect.any(Number), freeMemory: expect.any(Number) };
  await eventually(() => cluster.workers[0]?.health !== undefined);
  expect(cluster.workers[0]?.health).toMatchObject(figures);
});

it('a worker that leaves waits until its result is through, however slow its uplink', {
  tags: 'long',
}, async () => {
  const cluster = scene.coordinator();
  const worker = scene.spawn({ servers: proxy.address });
  await cluster.ready();
  proxy.uplinkBytesPerSecond = 160_000;
  const value = await cluster.schedule('bytesOf', [2_500_000]);
  const before = proxy.bytesUp;
  await eventually(() => proxy.bytesUp > before + 200_000); // the result is on its way
  const ended = worker.kill('SIGTERM');
  expect(await value.fetch()).toHaveLength(2_500_000);
  expect(await ended).toEqual([143, null]);
  expect(cluster.stats()).toMatchObject({ retried: 0 });
});

it('a worker without results that leaves waits for no coordinator that is away', {
  tags: 'long',
}, async () => {
  const cluster = scene.coordinator({ unavailableAfterMs: 300_000 });
  const worker = scene.spawn({ servers: proxy.address });
  await untilReport(cluster, ({ tasks }) => {
    if (tasks[0]?.phase !== 'ready') return false;
    proxy.swallow(); // before the coordinator has acknowledged the status of the worker
    return true;
  });
  expect(await worker.kill('SIGTERM')).toEqual([143, null]);
});

it('a worker keeps a coordinator that is cut off for less than unavailableAfterMs', {
  tags: 'long',
}, async () => {
  const servers = proxy.address;
  const cluster = scene.coordinator({ servers, unavailableAfterMs: 300_000 });
  const worker = scene.spawn();
  await cluster.ready();
  const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  proxy.swallow();
  await new Promise((resolve) => setTimeout(resolve, 33_000)); // longer than 30 s, the least
  visit.pass();
  proxy.restore();
  expect(await value.fetch()).toMatchObject({ pid: worker.pid, attempt: 1 });
  expect(worker.events.filter(({ event }) => event === 'session-over')).toEqual([]);
});
