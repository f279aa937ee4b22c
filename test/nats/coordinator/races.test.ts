/** Forced races of workers and stops. Races of coordinators: coordinators.test.ts. */
// @module-tag nats

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterCoordinator, ClusterSpec, type ReadinessReport } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { isPending } from '../../support/gate.ts';
import { diagnose } from '../../support/nats-doctor.ts';
import { completed, NatsScene, works } from '../../support/nats-scene.ts';
import type { NatsWorker, WorkerOptions } from '../../support/nats-worker.ts';
import { untilReport } from '../../support/not-ready.ts';
import { outlastThePress } from '../../support/press.ts';
import { type Visit, Visits } from '../../support/visits.ts';

/**
 * Longer than a worker may be silent (3 s); in `npm run soak -- --nats-faults` longer than any time
 * limit.
 */
const COMPUTE_MS = process.env['ALLSTOP_SOAK'] === undefined ? 4_000 : 10_000;
const MB = 1024 * 1024;

const cancelled = { code: 'ERR_ALLSTOP_CANCELLED' };
const unavailable = { code: 'ERR_ALLSTOP_UNAVAILABLE' };

let scene: NatsScene;
let visits: Visits;
let folder: string;
/** The path of a file into which functions write a line when they run. */
let lines: string;

const linesOf = (): string[] => readFileSync(lines, 'utf8').trim().split('\n');

beforeEach(async () => {
  visits = new Visits();
  await visits.open();
  folder = await mkdtemp(join(tmpdir(), 'allstop-awkward-'));
  lines = join(folder, 'lines');
});

afterEach(async () => {
  await visits.close();
  await scene.close();
  await rm(folder, { recursive: true });
});

const messageOf = (error: unknown): string => (error as Error).message;
const stateOf = (cluster: ClusterCoordinator, task = 0): string | undefined =>
  cluster.workers.find((worker) => worker.index === task)?.state;

/** Sends a busy worker five functions in advance, which earlier runs have shown to be short. */
async function busyWith(cluster: ClusterCoordinator) {
  for (let n = 0; n < 200; n += 1) await cluster.schedule('holdMaybe');
  await cluster.join();
  await cluster.schedule('hold', [visits.path, 'first']);
  const long = await cluster.schedule('holdMaybe', [visits.path, 'long']);
  const behind = [];
  for (let n = 0; n < 5; n += 1) behind.push(await cluster.schedule('holdMaybe'));
  (await visits.next('first')).pass(); // with a result the worker gets calls in advance
  const visit = await visits.next('long');
  await eventually(() => cluster.workers[0]?.running === 6);
  return { long, behind, visit };
}

describe('a worker', () => {
  it('whose welcome is lost is welcomed again, and makes its data sets once', async () => {
    scene = await NatsScene.open();
    const proxy = await scene.proxy();
    proxy.loseNext = '"kind":"welcome"';
    const cluster = scene.coordinator();
    const iterator = cluster.createPerWorkerDataset('made', [lines]).iterator();
    const worker = scene.spawn({ servers: proxy.address });
    await worker.next('session');
    expect(proxy.loseNext).toBeUndefined();
    const value = await cluster.schedule('next', [iterator]);
    expect(await value.fetch()).toEqual({ value: 0, done: false });
    await works(cluster);
    expect(linesOf()).toEqual([String(worker.pid)]);
  });

  it('that takes the place of one that is only stopped gets it, and keeps it', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const old = scene.workers[0] as NatsWorker;
    old.child.kill('SIGSTOP');
    const worker = scene.spawn({ task: 0 });
    expect(await worker.next('refused')).toMatchObject({
      phase: 'task-taken',
      why: expect.stringContaining(`(pid ${old.pid})`),
    });
    await worker.next('session');
    const where = await cluster.schedule('where');
    expect(await where.fetch()).toMatchObject({ pid: worker.pid });
    const refused = old.next('refused');
    old.child.kill('SIGCONT');
    expect(await refused).toMatchObject({ why: expect.stringContaining(`(pid ${worker.pid})`) });
    await works(cluster);
    expect(cluster.workers).toMatchObject([{ index: 0, pid: worker.pid }]);
  });

  it('with the task of another waits until that has ended', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const [first] = scene.workers as [NatsWorker];
    const second = scene.spawn({ task: 0 });
    await second.next('refused');
    const where = async (): Promise<number> =>
      ((await (await cluster.schedule('where')).fetch()) as { pid: number }).pid;
    expect(await where()).toBe(first.pid);
    const session = second.next('session');
    await first.kill();
    await session;
    expect(await where()).toBe(second.pid);
  });

  it(`that computes for ${COMPUTE_MS} ms is not taken for dead`, {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const value = await cluster.schedule('compute', [COMPUTE_MS, lines, 1]);
    expect(await value.fetch()).toBe(1);
    expect(linesOf()).toEqual(['1']);
    expect(cluster.workers).toMatchObject([{ restarts: 0, completed: 1 }]);
  });

  it('that is busy gives what waits behind to one that is not', async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const { long, behind, visit } = await busyWith(cluster);
    scene.spawn({ task: 1 });
    await cluster.fetch(behind);
    expect(long.state).toBe('pending');
    visit.pass();
    await cluster.join();
  });

  it('that takes the place of another makes its data sets before it takes work', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const iterator = cluster.createPerWorkerDataset('holdAndMake', [visits.path, 'm']).iterator();
    (await visits.next('m')).pass();
    const first = await cluster.schedule('next', [iterator]);
    expect(await first.fetch()).toEqual({ value: 0, done: false });
    await scene.workers[0]?.kill();
    await eventually(() => stateOf(cluster) === 'lost');
    // 'lost', not 'silent': nobody listens at the node's subject.
    const lost = { phase: 'lost', cause: expect.stringContaining('is gone') };
    await expect(cluster.ready({ timeoutMs: 1 })).rejects.toMatchObject({
      report: { tasks: [lost] },
    });
    const value = await cluster.schedule('square', [3]);
    const next = await cluster.schedule('next', [iterator]);
    scene.spawn({ task: 0 });
    const making = await visits.next('m');
    await eventually(() => stateOf(cluster) === 'starting');
    expect(await isPending(value.fetch())).toBe(true);
    making.pass();
    expect(await value.fetch()).toBe(9);
    expect(await next.fetch()).toEqual({ value: 0, done: false }); // the new worker's iterator begins at 0
  });

  it('that cannot import the module is not tried again and again', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const broken = scene.spawn({ task: 1, env: { ALLSTOP_TEST_BROKEN: '1' } });
    await broken.next('session-over');
    await works(cluster);
    expect(cluster.workers).toMatchObject([{ index: 0 }, { index: 1, state: 'lost', restarts: 1 }]);
    expect(broken.events.filter(({ event }) => event === 'session')).toHaveLength(1);
  });

  it('that is a parameter server and is lost is the end', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const expected = new ClusterSpec({ worker: ['localhost:1'], ps: ['localhost:2'] });
    const cluster = scene.coordinator({ expect: expected });
    scene.spawn({ task: 0 });
    const ps = scene.spawn({ job: 'ps', task: 0 });
    await cluster.ready();
    const value = await cluster.schedule('hold', [visits.path, 'a']);
    await visits.next('a');
    const joined = cluster.join();
    const settling = Promise.allSettled([joined, value.fetch()]);
    await ps.kill();
    const lost = { ...unavailable, message: expect.stringContaining('ps:0') };
    expect(await settling).toMatchObject([{ reason: lost }, { reason: lost }]);
    await expect(cluster.schedule('square', [1])).rejects.toMatchObject(lost);
  });
});

describe('SIGTERM', () => {
  it('under load: the worker does what it has, ends with 143, and nothing is run twice', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(2);
    const count = 1_500;
    const all = [];
    for (let n = 0; n < count; n += 1) all.push(await cluster.schedule('compute', [1, lines, n]));
    await all[count / 5]?.fetch();
    const worker = scene.workers[0] as NatsWorker;
    const leaving = worker.next('leaving');
    const ended = worker.kill('SIGTERM');
    expect(await leaving).toMatchObject({ signal: 'SIGTERM' });
    expect(await ended).toEqual([143, null]);
    await cluster.join();
    expect(await cluster.fetch(all)).toEqual(all.map((_, n) => n));
    const run = linesOf().map(Number);
    expect(run.toSorted((a, b) => a - b)).toEqual(all.map((_, n) => n));
    expect(completed(cluster)).toBe(count);
  });

  it('of a worker without work: it ends at once, also if there is no coordinator', async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    expect(await scene.workers[0]?.kill('SIGTERM')).toEqual([143, null]);
    await eventually(() => stateOf(cluster) === 'left');
    await cluster.close();
    const worker = scene.spawn();
    await worker.next('connected');
    expect(await worker.kill('SIGTERM')).toEqual([143, null]);
  });

  it('what waits at the worker goes to others, what runs there ends there', async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const { long, behind, visit } = await busyWith(cluster);
    const worker = scene.workers[0] as NatsWorker;
    const ended = worker.kill('SIGTERM');
    await eventually(() => cluster.workers[0]?.running === 1);
    scene.spawn({ task: 1 });
    await cluster.fetch(behind);
    visit.pass('well');
    expect(await long.fetch()).toBe('well');
    expect(await ended).toEqual([143, null]);
  });

  it('for the second time within one press of a key: that is one signal', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    const visit = await visits.next('a');
    const worker = scene.workers[0] as NatsWorker;
    const leaving = worker.next('leaving');
    const ended = worker.kill('SIGINT');
    await leaving;
    void worker.kill('SIGTERM');
    visit.pass();
    expect(await value.fetch()).toMatchObject({ attempt: 1 });
    expect(await ended).toEqual([130, null]);
  });

  it('for the second time: it ends at once, and its work goes to another', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    const value = await cluster.schedule('holdAndSay', [visits.path, 'a']);
    await visits.next('a');
    const worker = scene.workers[0] as NatsWorker;
    const lost: string[] = [];
    cluster.on('workerLost', (_, { message }) => lost.push(message));
    void worker.kill('SIGTERM');
    await untilReport(cluster, ({ tasks }) => tasks[0]?.phase === 'leaving');
    const found = await diagnose(scene.server.address, 'test');
    expect(found).toMatchObject({ status: 0, ok: true }); // a worker that leaves is no problem
    const other = scene.spawn({ task: 1 });
    await other.next('session');
    await outlastThePress();
    expect(await worker.kill('SIGTERM')).toEqual([143, null]);
    (await visits.next('a')).pass();
    expect(await value.fetch()).toMatchObject({ pid: other.pid, attempt: 2 });
    expect(lost).toEqual([
      expect.stringMatching(/^Worker worker:0 \(.*\) has ended before its functions had$/),
    ]);
  });

  it('while the server is away: it ends when it has waited long enough for it', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    // The node waits for so long that its results are acknowledged, and for 10 s at least.
    const cluster = await scene.start(1, { cancelGraceMs: 0 }, { unavailableAfterMs: 5_000 });
    // Longer than the node would wait if it had no functions.
    await cluster.schedule('holdTwice', [visits.path, 'a', 3_000, 'b']);
    const visit = await visits.next('a');
    const worker = scene.workers[0] as NatsWorker;
    const disconnected = worker.next('disconnected');
    await scene.server.kill();
    await disconnected;
    const leaving = worker.next('leaving');
    const ended = worker.kill('SIGTERM');
    await leaving;
    visit.pass();
    (await visits.next('b')).pass();
    expect(await ended).toEqual([143, null]);
  });
});

/** The stop record, as a thread of a worker sees it. */
type Known = {
  id: string;
  error?: string;
  requester: { worker?: string; host?: string; pid: number; threadName: string; language: string };
  suppressed: string[];
};

describe('a stop', () => {
  /** Starts a worker whose threads report their stop record. */
  function spawnWatched(name: string, options: Partial<WorkerOptions> = {}): NatsWorker {
    const env = { ALLSTOP_TEST_STOPS: visits.path, ALLSTOP_TEST_NAME: name };
    return scene.spawn({ ...options, env });
  }

  async function knows(visit: Visit, is: (known: Known) => boolean): Promise<Known> {
    for (;;) {
      const known = JSON.parse(await visit.told()) as Known;
      if (is(known)) return known;
    }
  }

  it('by two workers at the same moment is one record, the same everywhere', async () => {
    scene = await NatsScene.open();
    const proxy = await scene.proxy();
    const cluster = scene.coordinator({ minWorkers: 3 }, { cancelGraceMs: 600_000 });
    const watching: Visit[] = [];
    for (let task = 0; task < 3; task += 1) {
      spawnWatched(`w${task}`, { task, servers: proxy.address });
      watching.push(await visits.next(`w${task}`));
    }
    await cluster.ready();
    for (const name of ['a', 'b']) {
      await cluster.schedule('holdAndStop', [visits.path, name, name]);
    }
    const [a, b] = [await visits.next('a'), await visits.next('b')];
    proxy.latencyMs = 100; // so that neither hears of the other's stop first
    a.pass();
    b.pass();
    await cluster.coordinator.waitForStop();
    const { coordinator } = cluster;
    await eventually(() => coordinator.stopRecord?.suppressedCount === 1);
    const { stopRecord } = coordinator;
    const winner = messageOf(stopRecord?.error);
    const loser = winner === 'a' ? 'b' : 'a';
    expect(stopRecord?.suppressed).toMatchObject([{ error: { message: loser } }]);
    const { worker, host, pid, threadName, language } = stopRecord?.requester ?? {};
    expect(host).toBe(hostname());
    const requester = { worker, pid, threadName, language };
    for (const visit of watching) {
      const known = await knows(visit, ({ error }) => error === winner);
      expect(known.requester).toMatchObject(requester);
      expect(known.id).toBe(stopRecord?.id);
    }
    const second = stopRecord?.suppressed[0]?.requester.worker;
    expect(new Set([worker, second])).toEqual(new Set(['worker:0', 'worker:1']));
  });

  it('is known to a worker that comes later, and it gets no work', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1);
    cluster.coordinator.requestStop(new RangeError('enough'));
    const late = spawnWatched('late', { task: 1 });
    const session = late.next('session');
    const known = await knows(await visits.next('late'), () => true);
    expect(known).toMatchObject({ error: 'enough', requester: { pid: process.pid } });
    await session;
    await expect(cluster.schedule('square', [1])).rejects.toMatchObject({
      ...cancelled,
      cause: { message: 'enough' },
    });
  });

  it('by a worker while the server is away is heard when it is back', async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(2);
    const value = await cluster.schedule('holdAndStop', [visits.path, 'a', 'enough']);
    const visit = await visits.next('a');
    await scene.server.kill();
    visit.pass();
    await visit.left;
    expect(cluster.coordinator.shouldStop()).toBe(false);
    await scene.server.restart();
    await cluster.coordinator.waitForStop();
    const { stopRecord } = cluster.coordinator;
    expect(stopRecord).toMatchObject({
      error: { message: 'enough' },
      requester: { host: hostname() },
    });
    await value.fetch().catch(() => {});
    await expect(cluster.join()).rejects.toMatchObject(cancelled);
  });

  it('by the program while the server is away is heard when it is back', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = scene.coordinator({}, { cancelGraceMs: 600_000 });
    spawnWatched('w', {});
    const watching = await visits.next('w');
    await cluster.ready();
    await scene.server.kill();
    cluster.coordinator.requestStop(new RangeError('enough'));
    await scene.server.restart();
    await knows(watching, ({ error }) => error === 'enough');
  });

  it('whose error has a long message is told to doctor in short', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const cluster = scene.coordinator({ minWorkers: 0 });
    await cluster.ready();
    cluster.coordinator.requestStop(new RangeError('x'.repeat(3_000_000)));
    const { checks } = await diagnose(scene.server.address, 'test');
    const { detail } = checks.find(({ name }) => name === 'coordinator') ?? {};
    expect(detail).toMatch(/stopped .* ago, since .*: RangeError: x{500}/);
  });

  it('by a worker that dies, while the coordinator is cut off, is told by the others', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const proxy = await scene.proxy();
    const cluster = scene.coordinator({ minWorkers: 2, servers: proxy.address });
    const workers = ['w0', 'w1'].map((name, task) => spawnWatched(name, { task }));
    const watching = [await visits.next('w0'), await visits.next('w1')];
    await cluster.ready();
    await cluster.schedule('holdAndStop', [visits.path, 'a', 'enough']);
    const visit = await visits.next('a');
    proxy.swallow();
    visit.pass();
    const is = ({ error }: Known): boolean => error === 'enough';
    const [known] = await Promise.all(watching.map((each) => knows(each, is)));
    const { worker = '' } = known?.requester ?? {};
    await workers[Number(worker.split(':')[1])]?.kill();
    proxy.restore();
    await cluster.coordinator.waitForStop();
    expect(cluster.coordinator.stopRecord).toMatchObject({
      id: known?.id,
      error: { message: 'enough' },
      requester: { worker },
    });
  });

  it('by a worker that was given up meanwhile is heard when it is back', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const proxy = await scene.proxy();
    const cluster = scene.coordinator();
    scene.spawn({ task: 0, servers: proxy.address });
    await cluster.ready();
    await cluster.schedule('holdAndStop', [visits.path, 'a', 'enough']);
    const visit = await visits.next('a');
    proxy.swallow();
    visit.pass();
    await eventually(() => stateOf(cluster) === 'lost');
    expect(cluster.coordinator.shouldStop()).toBe(false);
    proxy.restore();
    await cluster.coordinator.waitForStop();
    expect(cluster.coordinator.stopRecord).toMatchObject({
      error: { message: 'enough' },
      requester: { worker: 'worker:0', host: hostname() },
    });
  });

  it('by a thread of a worker (js) says which, and where', () =>
    saysWhichAndWhere('js', 'stop', 'cluster/worker:3'));
  it('by a thread of a worker (native) says which, and where', { tags: 'long' }, () =>
    saysWhichAndWhere('native', 'stopNatively', 'in-a-worker'),
  );

  async function saysWhichAndWhere(
    language: string,
    name: string,
    threadName: string,
  ): Promise<void> {
    scene = await NatsScene.open();
    const cluster = scene.coordinator();
    const worker = scene.spawn({ task: 3 });
    const value = await cluster.schedule(name, ['disk gone']);
    await cluster.coordinator.waitForStop();
    expect(cluster.coordinator.stopRecord).toMatchObject({
      kind: 'error',
      error: { name: 'RangeError', message: 'disk gone' },
      requester: { language, threadName, worker: 'worker:3', host: hostname(), pid: worker.pid },
    });
    await value.fetch().catch(() => {});
    await cluster.coordinator.join().catch(() => {}); // after this the arbiter has answered
    expect(cluster.coordinator.stopRecord?.suppressedCount).toBe(0);
  }

  it('with an error that is longer than a message may be is heard, too', async () => {
    scene = await NatsScene.open('max_payload: 64KB');
    const cluster = scene.coordinator({ minWorkers: 2 }, { cancelGraceMs: 600_000 });
    const length = 300_000;
    spawnWatched('w', { task: 1 });
    const watching = await visits.next('w');
    await cluster.schedule('hold', [visits.path, 'busy']); // on either worker
    scene.spawn({ task: 0 });
    await cluster.ready();
    await cluster.schedule('stopAtLength', [length]);
    await cluster.coordinator.waitForStop();
    expect(messageOf(cluster.coordinator.stopRecord?.error).length).toBeGreaterThan(64_000);
    await knows(watching, ({ error }) => (error?.length ?? 0) > 64_000);
  });
});

describe('the first error', () => {
  it('waits until every function is declared dead', { tags: 'long' }, () => waits('is dead'));
  it('waits until every function has ended', () => waits('has ended'));

  async function waits(how: 'is dead' | 'has ended'): Promise<void> {
    scene = await NatsScene.open();
    const cluster = await scene.start(2);
    await cluster.schedule('hold', [visits.path, 'a']);
    const visit = await visits.next('a');
    const { pid } = cluster.workers.find(({ running }) => running === 1) as { pid: number };
    const failing = await cluster.schedule('fail', ['broken']);
    await expect(failing.fetch()).rejects.toThrow('broken');
    const joined = cluster.join();
    joined.catch(() => {});
    if (how === 'has ended') {
      expect(await isPending(joined)).toBe(true);
      visit.pass();
    } else {
      process.kill(pid, 'SIGSTOP');
      expect(await isPending(joined)).toBe(true);
      await eventually(() => cluster.workers.some(({ state }) => state === 'lost'));
    }
    await expect(joined).rejects.toThrow('broken');
    if (how !== 'has ended') process.kill(pid, 'SIGCONT');
    await works(cluster);
  }

  it('does not come again, and what was cancelled is not run, if its worker dies', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(2);
    const controller = new AbortController();
    const { signal } = controller;
    const value = await cluster.schedule('hold', [visits.path, 'a'], { signal });
    await visits.next('a');
    const worker = cluster.workers.find(({ running }) => running === 1);
    controller.abort(new RangeError('not wanted'));
    await expect(value.fetch()).rejects.toThrow('not wanted');
    await scene.workers[worker?.index as number]?.kill();
    await cluster.join();
    await works(cluster);
    expect(visits.names).toEqual(['a']);
  });
});

it('a worker whose output nobody reads any more goes on', async () => {
  scene = await NatsScene.open();
  const cluster = scene.coordinator();
  const worker = scene.spawn();
  await worker.next('connected');
  worker.child.stderr?.destroy();
  await cluster.ready(); // the worker has written to its stderr meanwhile
  await works(cluster);
  expect(await worker.kill('SIGTERM')).toEqual([143, null]);
});

it('workers keep their counts when the cluster is closed', { tags: 'long' }, async () => {
  scene = await NatsScene.open();
  const cluster = await scene.start(1);
  await works(cluster);
  await cluster.close();
  expect(completed(cluster)).toBe(100);
});

describe('close() in the middle', () => {
  for (const [how, tags] of [
    ['all is well', ['long']],
    ['a worker is dead', ['long']],
    ['a worker is stopped', []],
    ['the server is away', []],
  ] as const) {
    it(`settles everything, when ${how}`, { tags: [...tags] }, async () => {
      scene = await NatsScene.open();
      const cluster = await scene.start(2, { cancelGraceMs: 100 });
      const values = [];
      for (const name of ['a', 'b'])
        values.push(await cluster.schedule('hold', [visits.path, name]));
      for (const name of ['a', 'b']) await visits.next(name);
      for (let n = 0; n < 500; n += 1) values.push(await cluster.schedule('square', [n]));
      const [worker] = scene.workers as [NatsWorker];
      if (how === 'a worker is dead') await worker.kill();
      else if (how === 'a worker is stopped') worker.child.kill('SIGSTOP');
      else if (how === 'the server is away') await scene.server.kill();
      const closedAt = performance.now();
      await cluster.close();
      expect(performance.now() - closedAt).toBeLessThan(30_000);
      for (const value of values) {
        expect(value.state).toBe('cancelled');
        await expect(value.fetch()).rejects.toMatchObject(cancelled);
      }
    });
  }
});

it('close() while a worker that leaves cannot be told that it may', async () => {
  scene = await NatsScene.open();
  const cluster = scene.coordinator({ minWorkers: 2 });
  const worker = scene.spawn();
  const isIn = (phase: string) => (report: ReadinessReport) => report.tasks[0]?.phase === phase;
  await untilReport(cluster, isIn('ready'));
  const leaving = untilReport(cluster, (report) => {
    if (!isIn('leaving')(report)) return false;
    worker.child.kill('SIGSTOP'); // before it gets the end of the session
    return true;
  });
  worker.child.kill('SIGTERM');
  await leaving;
  await scene.server.kill();
  await untilReport(cluster, ({ engine }) => engine.phase === 'connecting');
  await cluster.close();
  expect(stateOf(cluster)).toBe('lost');
});

describe('what is large', () => {
  it('20 MB to and fro, several at once', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(2);
    const sent = Array.from({ length: 6 }, (_, n) => new Uint8Array(20 * MB).fill(n));
    const all = [];
    for (const bytes of sent) all.push(await cluster.schedule('increase', [bytes]));
    for (const [n, value] of all.entries()) {
      const bytes = (await value.fetch()) as Uint8Array;
      expect(Buffer.compare(bytes, new Uint8Array(20 * MB).fill(n + 1))).toBe(0);
    }
  });

  it('is not sent in advance without bound, however short its function is', {
    tags: 'long',
  }, async () => {
    scene = await NatsScene.open();
    const cluster = await scene.start(1, { maxQueued: 2 });
    for (let n = 0; n < 200; n += 1) await cluster.schedule('lengthOf', [new Uint8Array(1)]);
    await cluster.join();
    let most = 0;
    const all = [];
    for (let n = 0; n < 20; n += 1) {
      all.push(await cluster.schedule('lengthOf', [new Uint8Array(10 * MB)]));
      most = Math.max(most, cluster.workers[0]?.running ?? 0);
    }
    await cluster.join();
    expect(await cluster.fetch(all)).toEqual(all.map(() => 10 * MB));
    expect(most).toBeLessThan(10);
  });

  it('gets through a server that takes less than before', { tags: 'long' }, async () => {
    scene = await NatsScene.open('max_payload: 256KB');
    const cluster = await scene.start(1);
    const bytes = new Uint8Array(MB).fill(1);
    const held = await cluster.schedule('hold', [visits.path, 'a']);
    await visits.next('a');
    await scene.server.kill();
    const value = await cluster.schedule('increase', [bytes]);
    scene.server.reconfigure('max_payload: 64KB');
    await scene.server.restart();
    (await visits.next('a')).pass('again'); // run again in a new session
    expect(await held.fetch()).toBe('again');
    expect(Buffer.compare((await value.fetch()) as Uint8Array, bytes.fill(2))).toBe(0);
    await works(cluster);
  });

  it('is cut into what the server takes', async () => {
    scene = await NatsScene.open('max_payload: 4KB');
    const cluster = await scene.start(1);
    const bytes = new Uint8Array(MB).fill(7);
    const value = await cluster.schedule('increase', [bytes]);
    expect(Buffer.compare((await value.fetch()) as Uint8Array, bytes.fill(8))).toBe(0);
  });
});
