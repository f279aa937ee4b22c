/**
 * A function that kills the process of its worker harms no other function on that node: what ran
 * beside it is run once more, alone, and only the function itself dies again.
 */
// @module-tag nats
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

const SLOTS = 4;

let scene: NatsScene;
/** Nothing is started again any more. */
let isOver: boolean;
const visits = new Visits();

beforeEach(async () => {
  isOver = false;
  await visits.open();
  scene = await NatsScene.open();
});
afterEach(async () => {
  isOver = true;
  await scene.close();
  await visits.close();
});

/** Starts a node, and another each time that its process has died, as a supervisor does. */
function supervise(task: number): void {
  const worker = scene.spawn({ task, slots: SLOTS });
  worker.child.once('exit', (_code, signal) => {
    scene.workers.splice(scene.workers.indexOf(worker), 1);
    if (signal === 'SIGKILL' && !isOver) supervise(task);
  });
}

it('harms none of those that ran beside it, with one retry', { timeout: 120_000 }, async () => {
  const cluster = scene.coordinator({ lostAfterMs: 1_000 }, { retries: 1 });
  supervise(0);
  await cluster.ready();
  const harmless = ['a', 'b', 'c'].map((name) => cluster.run('holdAndSay', [visits.path, name]));
  const killer = cluster.run('holdAndKill', [visits.path, 'killer']);
  killer.catch(() => {});
  const [first] = await Promise.all(['killer', 'a', 'b', 'c'].map((name) => visits.next(name)));
  first?.pass();
  // They come one after the other, in the order of their calls.
  for (const name of ['a', 'b', 'c', 'killer']) {
    const visit = await visits.next(name);
    expect(cluster.workers[0]).toMatchObject({ running: 1, calls: [{ attempt: 2 }] });
    visit.pass();
  }
  const answers = await Promise.all(harmless);
  expect(answers.map(({ attempt }) => attempt)).toEqual([2, 2, 2]);
  await expect(killer).rejects.toThrow(/'holdAndKill' lost its worker 2 times in 2 attempts/);
  expect(visits.names.filter((name) => name === 'a')).toHaveLength(2);
});

it('harms none of those that were sent in advance', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-suspects-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'starts');
  const cluster = scene.coordinator({ lostAfterMs: 1_000, minWorkers: 2 }, { retries: 1 });
  supervise(0);
  supervise(1);
  await cluster.ready();
  // So many that nodes get some in advance, since they are short.
  const COUNT = 1_000;
  const killers = new Set([300, 301, 480, 700]);
  const calls = Array.from({ length: COUNT }, (_, n) =>
    cluster.run('noteOrKill', [path, killers.has(n) ? -n : n]),
  );
  const settled = await Promise.allSettled(calls);
  for (const [n, { status }] of settled.entries()) {
    expect([n, status]).toEqual([n, killers.has(n) ? 'rejected' : 'fulfilled']);
  }
  const starts = new Map<string, number>();
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
    starts.set(line, (starts.get(line) ?? 0) + 1);
  }
  for (const [n, count] of starts)
    if (!n.startsWith('-')) expect([n, count <= 2]).toEqual([n, true]);
});
