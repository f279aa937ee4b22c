/** Several coordinators of one cluster name, a coordinator without workers, and a wiped store. */
// @module-tag nats

import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completed, NatsScene, works } from '../../support/nats-scene.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';
import { untilReport, whyNotReady } from '../../support/not-ready.ts';
import { startScript } from '../../support/run-script.ts';
import { Visits } from '../../support/visits.ts';

const failedPrecondition = { code: 'ERR_ALLSTOP_FAILED_PRECONDITION' };

let scene: NatsScene;
let visits: Visits;

beforeEach(async () => {
  visits = new Visits();
  await visits.open();
});

afterEach(async () => {
  await visits.close();
  await scene.close();
});

/** A worker that alone knows which run was the last: the server's store was wiped since. */
async function servedAndForgotten(): Promise<NatsWorker> {
  scene = await NatsScene.open();
  const worker = scene.spawn();
  const before = scene.coordinator();
  await before.ready();
  await before.close();
  await scene.server.kill();
  scene.server.wipe();
  await scene.server.restart();
  return worker;
}

describe('a coordinator that a newer one has superseded', () => {
  it('gets a FailedPreconditionError from everything, and hears nothing more', async () => {
    scene = await NatsScene.open();
    const old = await scene.start(1, { maxQueued: 1 });
    const worker = scene.workers[0] as NatsWorker;
    const held = await old.schedule('hold', [visits.path, 'old']);
    const visit = await visits.next('old');
    const queued = await old.schedule('square', [2]);
    const calls = [held.fetch(), queued.fetch(), old.schedule('square', [3]), old.join()];
    const settling = Promise.allSettled(calls);
    const over = worker.next('session-over');
    const session = worker.next('session');
    const newer = scene.coordinator();
    for (const settled of await settling) {
      expect(settled).toMatchObject({ reason: failedPrecondition });
    }
    await over;
    await session;
    expect(worker.events.map(({ event }) => event)).toContain('serving');
    visit.pass(); // the old run's function ends too late
    await works(newer);
    await expect(old.schedule('square', [1])).rejects.toMatchObject(failedPrecondition);
    await expect(old.join()).rejects.toMatchObject(failedPrecondition);
    await expect(old.done()).rejects.toMatchObject(failedPrecondition);
    expect([held.state, queued.state]).toEqual(['failed', 'failed']);
    expect(completed(old)).toBe(0);
    expect(completed(newer)).toBe(100);
    await old.close();
    await works(newer);
  });

  it('that a worker takes for an older one gets a greater number', async () => {
    const worker = await servedAndForgotten();
    const now = Date.now;
    Date.now = () => now() - 3_600_000;
    try {
      const after = scene.coordinator();
      await works(after);
    } finally {
      Date.now = now;
    }
    expect(worker.events.filter(({ event }) => event === 'session')).toHaveLength(2);
  });

  it('that a worker ignores, because its clock is months behind, says so; so does the worker', {
    tags: 'long',
  }, async () => {
    const worker = await servedAndForgotten();
    const now = Date.now;
    Date.now = () => now() - 60 * 86_400_000;
    try {
      const ignored = worker.next('ignored');
      const after = scene.coordinator();
      const error = await whyNotReady(
        after,
        ({ tasks }) => tasks[0]?.cause?.includes('ignores') === true,
      );
      expect(error.message).toMatch(
        /worker:0 .*, connecting .*the clock of this machine is 60 days behind.*start the worker again/,
      );
      expect(await ignored).toMatchObject({
        cause: expect.stringMatching(/the clock of its machine is 60 days behind/),
        remedy: expect.stringMatching(/start this worker again/),
      });
    } finally {
      Date.now = now;
    }
  });

  it('finds that out when it goes on after it was stopped', { tags: 'long' }, async () => {
    scene = await NatsScene.open();
    const worker = scene.spawn();
    const old = startScript('nats-coordinator', [scene.server.address, visits.path]);
    await old.says('scheduled');
    const visit = await visits.next('old');
    old.kill('SIGSTOP');
    const session = worker.next('session');
    const newer = scene.coordinator();
    await session;
    visit.pass();
    await works(newer);
    old.kill('SIGCONT');
    const code = failedPrecondition.code;
    expect(await old.says('superseded')).toMatchObject({
      fetch: code,
      schedule: code,
      join: code,
      done: code,
    });
    expect(await old.ended).toMatchObject({ code: 0 });
    await works(newer);
    expect(newer.workers).toMatchObject([{ restarts: 0 }]);
  });
});

it('a worker whose coordinator is silent says hello again to a newer run that dropped it', async () => {
  scene = await NatsScene.open();
  const proxy = await scene.proxy();
  const older = scene.coordinator({ servers: proxy.address });
  const worker = scene.spawn();
  await older.ready();
  proxy.swallow();
  const newer = await connect({ servers: scene.server.address });
  const run = { run: 'newer', token: Date.now() + 60_000 };
  const limits = { cancelGraceMs: 5_000, unavailableAfterMs: 60_000, retries: 3 };
  let hellos = 0;
  newer.subscribe('allstop.test.hello', {
    callback: (_, message) => {
      hellos += 1;
      if (hellos === 1) return; // dropped
      const { node, definition } = message.json<{ info: Record<string, string> }>().info;
      const place = { session: 'next', task: 0, definition };
      const welcome = { kind: 'welcome', ...run, ...limits, ...place };
      newer.publish(`allstop.test.node.${node}`, JSON.stringify(welcome));
    },
  });
  const session = worker.next('session');
  newer.publish('allstop.test.who', JSON.stringify({ kind: 'who', ...run }));
  expect(await session).toMatchObject({ run: 'newer' });
  await newer.close();
});

describe('a store that has forgotten who has the cluster', () => {
  /** An older coordinator that is cut off while a newer one takes the cluster. */
  async function twoRuns() {
    scene = await NatsScene.open();
    const proxy = await scene.proxy();
    const older = scene.coordinator({ servers: proxy.address });
    scene.spawn();
    await older.ready();
    proxy.swallow();
    await untilReport(older, ({ engine }) => engine.phase === 'connecting');
    const newer = scene.coordinator();
    await works(newer);
    return { proxy, older, newer };
  }

  it('does not bring an older run back', { tags: 'long' }, async () => {
    const { proxy, older, newer } = await twoRuns();
    const nats = await connect({ servers: scene.server.address });
    await (await jetstreamManager(nats)).streams.delete('KV_allstop_test');
    await nats.close();
    proxy.restore();
    await expect(older.ready()).rejects.toThrow(/A newer run has taken over/);
    await works(newer);
    await expect(older.done()).rejects.toMatchObject(failedPrecondition);
  });

  it('does not keep an answer of a worker from it that a later run is to be believed', async () => {
    scene = await NatsScene.open();
    const worker = scene.spawn();
    const older = scene.coordinator();
    await older.ready();
    const stranger = await connect({ servers: scene.server.address });
    worker.child.kill('SIGSTOP');
    await new Promise<void>((resolve) => {
      stranger.subscribe('allstop.test.node.*', {
        callback: (_, message) => {
          const { kind, session } = message.json<{ kind: string; session: string }>();
          if (kind !== 'probe') return;
          message.respond(JSON.stringify({ session, token: 2 ** 50 }));
          resolve();
        },
      });
    });
    await stranger.close();
    worker.child.kill('SIGCONT');
    await works(older);
    const newer = scene.coordinator();
    await works(newer);
    await expect(older.join()).rejects.toMatchObject(failedPrecondition);
  });
});

it('a coordinator whose server hung and began anew finds its workers ready again', {
  tags: 'long',
}, async () => {
  scene = await NatsScene.open();
  const cluster = await scene.start(2);
  await scene.server.kill('SIGSTOP');
  await untilReport(cluster, ({ tasks }) => tasks.some(({ phase }) => phase === 'silent'));
  await scene.server.kill();
  await scene.server.restart();
  await cluster.ready();
  await works(cluster);
});

it('a coordinator without a worker takes calls, which a worker runs that comes later', async () => {
  scene = await NatsScene.open();
  const cluster = scene.coordinator();
  const value = await cluster.schedule('square', [3]);
  const missing = await cluster.schedule('noSuchFunction');
  expect([value.state, missing.state]).toEqual(['pending', 'pending']);
  scene.spawn();
  expect(await value.fetch()).toBe(9);
  const why = /no function 'noSuchFunction'/;
  await expect(missing.fetch()).rejects.toThrow(why);
  await expect(cluster.join()).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  await expect(cluster.schedule('noSuchFunction')).rejects.toThrow(TypeError); // the functions are known now
});

it('a call that was given up before any worker came is waited for by nobody', async () => {
  scene = await NatsScene.open();
  const cluster = scene.coordinator();
  expect(await cluster.done()).toBe(true);
  const abort = new AbortController();
  const calls = [
    cluster.schedule('square', [1], { timeoutMs: 20 }),
    cluster.schedule('square', [2], { signal: abort.signal }),
  ];
  const joined = cluster.join();
  abort.abort('enough');
  const reasons = (await Promise.allSettled(calls)).map((settled) => settled);
  expect(reasons).toMatchObject([
    { reason: { code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' } },
    { reason: 'enough' },
  ]);
  await joined;
  expect(await cluster.done()).toBe(true);
});
