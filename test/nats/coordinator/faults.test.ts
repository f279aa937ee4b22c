/**
 * Workers, servers and the network fail, at random and on purpose. Each scheduled function still
 * ends once, with its own result.
 */
// @module-tag nats
import type { ClusterCoordinator } from 'allstop/cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { completed, NatsScene, Squares } from '../../support/nats-scene.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';
import { seed } from '../../support/seed.ts';
import { Visits } from '../../support/visits.ts';

/** `npm run soak -- --nats-faults` */
const isSoak = process.env['ALLSTOP_SOAK'] !== undefined;
const rounds = isSoak ? 20 : 1;
const AWAY_MS = isSoak ? 8_000 : 1_500;
const TIMEOUT_MS = 120_000;
const LONGEST_GAP_MS = 30_000;

let scene: NatsScene;
let state = seed;

/** A random integer from 0 to `below` - 1. */
function random(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

afterEach(() => scene.close());

async function exact(cluster: ClusterCoordinator, squares: Squares, count: number): Promise<void> {
  const began = performance.now();
  await cluster.join();
  expect(performance.now() - began).toBeLessThan(LONGEST_GAP_MS);
  expect(await cluster.fetch(squares.all)).toEqual(squares.results);
  expect(squares.settled).toBe(count);
  expect(completed(cluster)).toBe(count);
}

/** Schedules `count` functions, with the fault at `times` random places among them. */
async function among(
  cluster: ClusterCoordinator,
  count: number,
  times: number,
  fault: () => Promise<void>,
): Promise<void> {
  const squares = new Squares();
  const before = completed(cluster);
  expect(before).toBe(0);
  const places = Array.from({ length: times }, () => random(count * 0.8)).toSorted((a, b) => a - b);
  const scheduling = squares.schedule(cluster, count);
  for (const place of places) {
    await squares.reached(place);
    if (place === places[0]) expect(squares.settled).toBeLessThan(count);
    await fault();
  }
  await scheduling;
  await exact(cluster, squares, count);
}

describe.each(Array.from({ length: rounds }, (_, round) => round))(
  `with the seed ${seed}, round %i: 2,000 functions`,
  () => {
    async function workersAreKilled(workers: number, times: number): Promise<void> {
      scene = await NatsScene.open();
      const cluster = await scene.start(workers);
      await among(cluster, 2_000, times, async () => {
        const task = random(workers);
        const died = scene.workers.filter(({ child }) => child.exitCode === null);
        const worker = died[random(died.length)] as NatsWorker;
        await worker.kill('SIGKILL');
        scene.workers.splice(scene.workers.indexOf(worker), 1);
        scene.spawn(random(2) === 0 ? {} : { task });
      });
    }
    it('though workers are killed', { timeout: TIMEOUT_MS }, () => workersAreKilled(2, 3));
    it('though workers are killed again and again', { tags: 'long', timeout: TIMEOUT_MS }, () =>
      workersAreKilled(4, 8),
    );

    it('though the server is killed three times', {
      tags: 'long',
      timeout: TIMEOUT_MS,
    }, async () => {
      scene = await NatsScene.open();
      const cluster = await scene.start(3);
      await among(cluster, 2_000, 3, async () => {
        await scene.server.kill();
        await scene.server.restart();
      });
      // No worker was given up: workers had lost the server no longer than the coordinator.
      expect(cluster.workers.map(({ restarts }) => restarts)).toEqual([0, 0, 0]);
    });

    it('though the server forgets all that it has stored', {
      tags: 'long',
      timeout: TIMEOUT_MS,
    }, async () => {
      scene = await NatsScene.open();
      const cluster = await scene.start(3);
      await among(cluster, 2_000, 1, async () => {
        await scene.server.kill();
        scene.server.wipe();
        await scene.server.restart();
      });
    });

    it(`though the server is away for ${AWAY_MS} ms`, { timeout: TIMEOUT_MS }, async () => {
      scene = await NatsScene.open();
      const cluster = await scene.start(2);
      await among(cluster, 2_000, 1, async () => {
        await scene.server.kill();
        await new Promise((resolve) => setTimeout(resolve, AWAY_MS)); // the fault itself
        await scene.server.restart();
      });
    });

    it('though one after the other of three servers is killed', {
      tags: 'long',
      timeout: TIMEOUT_MS,
    }, async () => {
      scene = await NatsScene.openThree();
      const cluster = await scene.start(3, {}, { replicas: 3 });
      // Among them: the leader of JetStream, and the server that the coordinator uses.
      const order = [...scene.servers];
      await among(cluster, 2_000, 3, async () => {
        const [server] = order.splice(random(order.length), 1);
        await server?.kill();
        await server?.restart();
      });
    });

    it('though it is a long way', { tags: 'long', timeout: TIMEOUT_MS }, async () => {
      scene = await NatsScene.open();
      const proxy = await scene.proxy();
      proxy.latencyMs = 40;
      const cluster = scene.coordinator({ minWorkers: 2 });
      for (let task = 0; task < 2; task += 1) scene.spawn({ task, servers: proxy.address });
      await cluster.ready();
      await among(cluster, 2_000, 0, async () => {});
    });
  },
);

describe('a worker that is silent', () => {
  it('because it was stopped: its work goes to another, and it comes back', async () => {
    scene = await NatsScene.open();
    const visits = new Visits();
    await visits.open();
    const cluster = await scene.start(1);
    const stopped = scene.workers[0] as NatsWorker;
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const first = await visits.next('a');
    const other = scene.spawn({ task: 1 });
    await other.next('session');
    stopped.child.kill('SIGSTOP');
    const second = await visits.next('a');
    second.pass();
    expect(await value.fetch()).toMatchObject({ pid: other.pid, attempt: 2 });
    first.pass(); // after SIGCONT it has a result, which must be ignored
    stopped.child.kill('SIGCONT');
    await eventually(() => cluster.workers[0]?.state === 'idle');
    expect(cluster.workers[0]).toMatchObject({ index: 0, pid: stopped.pid, completed: 0 });
    expect(stopped.events.filter(({ event }) => event === 'session')).toHaveLength(1);
    const squares = new Squares();
    await squares.schedule(cluster, 1_000);
    await cluster.join();
    expect(await cluster.fetch(squares.all)).toEqual(squares.results);
    expect(completed(cluster)).toBe(1_001);
    await eventually(() => cluster.workers.every(({ state: each }) => each === 'idle'));
    await visits.close();
  });

  it('because the network swallows all: likewise', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const visits = new Visits();
    await visits.open();
    const proxy = await scene.proxy();
    const cluster = scene.coordinator();
    const far = scene.spawn({ task: 0, servers: proxy.address });
    await cluster.ready();
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const first = await visits.next('a');
    const near = scene.spawn({ task: 1 });
    await near.next('session');
    proxy.swallow();
    first.pass(); // the proxy swallows its result
    const second = await visits.next('a');
    second.pass();
    expect(await value.fetch()).toMatchObject({ pid: near.pid, attempt: 2 });
    proxy.restore();
    await eventually(() => cluster.workers[0]?.state === 'idle');
    expect(cluster.workers[0]).toMatchObject({ index: 0, pid: far.pid, completed: 0 });
    const squares = new Squares();
    await squares.schedule(cluster, 1_000);
    await cluster.join();
    expect(await cluster.fetch(squares.all)).toEqual(squares.results);
    expect(completed(cluster)).toBe(1_001);
    await visits.close();
  });
});

it('a result through a slow uplink is sent once, and the worker is not given up', {
  tags: 'long',
}, async () => {
  const LENGTH = 120_000; // eight messages, which take 1.6 s each
  scene = await NatsScene.open('max_payload: 16KB\nping_interval: "5s"');
  const proxy = await scene.proxy();
  const cluster = scene.coordinator();
  scene.spawn({ task: 0, servers: proxy.address });
  await cluster.ready();
  proxy.uplinkBytesPerSecond = 10_000;
  const before = proxy.bytesUp;
  const value = await cluster.schedule('bytesOf', [LENGTH]);
  expect(await value.fetch()).toHaveLength(LENGTH);
  expect(proxy.bytesUp - before).toBeLessThan(1.2 * LENGTH);
  expect(proxy.connections).toBe(1);
  expect(cluster.stats()).toMatchObject({ retried: 0, engine: { nodesLost: 0 } });
});

it('a server that hangs is no fault of the workers', { tags: 'long' }, async () => {
  scene = await NatsScene.open();
  const visits = new Visits();
  await visits.open();
  const cluster = await scene.start(1);
  const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  const down = (scene.workers[0] as NatsWorker).next('disconnected');
  await scene.server.kill('SIGSTOP');
  await down; // the worker has noticed, after more than three seconds
  visit.pass();
  await scene.server.kill('SIGCONT');
  expect(await value.fetch()).toMatchObject({ attempt: 1 });
  expect(cluster.workers).toMatchObject([{ restarts: 0, completed: 1 }]);
  await visits.close();
});

describe('servers that stay away', () => {
  it('are an UnavailableError of every call, and of every value that is awaited', async () => {
    scene = await NatsScene.open();
    const visits = new Visits();
    await visits.open();
    const cluster = scene.coordinator({ unavailableAfterMs: 1_000 }, { maxQueued: 2 });
    const worker = scene.spawn();
    await cluster.ready();
    const values = [await cluster.schedule('hold', [visits.path, 'a'])];
    await visits.next('a');
    for (let n = 0; n < 2; n += 1) values.push(await cluster.schedule('square', [n]));
    const calls = [
      ...values.map((value) => value.fetch()),
      cluster.schedule('square', [5]), // the queue is full
      cluster.join(),
      cluster.fetch(values),
    ];
    const settling = Promise.allSettled(calls);
    const lost = worker.next('disconnected');
    const killedAt = performance.now();
    await scene.server.kill();
    for (const settled of await settling) {
      expect(settled).toMatchObject({ reason: { code: 'ERR_ALLSTOP_UNAVAILABLE' } });
    }
    expect(performance.now() - killedAt).toBeGreaterThan(900);
    expect(performance.now() - killedAt).toBeLessThan(15_000);
    const late = { code: 'ERR_ALLSTOP_UNAVAILABLE', message: expect.stringContaining('1000 ms') };
    await expect(cluster.schedule('square', [1])).rejects.toMatchObject(late);
    await expect(cluster.join()).rejects.toMatchObject(late);
    await expect(cluster.done()).rejects.toMatchObject(late);
    await expect(cluster.ready()).rejects.toMatchObject({ name: 'ClusterNotReadyError' });
    await lost;
    await visits.close();
  });

  it('from the beginning are one, too', async () => {
    scene = await NatsScene.open();
    await scene.server.kill();
    const cluster = scene.coordinator({ unavailableAfterMs: 300 });
    const unavailable = { code: 'ERR_ALLSTOP_UNAVAILABLE' };
    // schedule() waits: no worker has reported yet which functions exist.
    const scheduled = cluster.schedule('square', [1]);
    await expect(scheduled).rejects.toMatchObject(unavailable);
    await expect(cluster.join()).rejects.toMatchObject(unavailable);
  });
});
