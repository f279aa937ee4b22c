// @module-tag nats
/** Threads of a node that are blocked in native code, or die. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NatsScene } from '../../../support/nats-scene.ts';

const module = new URL('../../../fixtures/cluster-faults.mjs', import.meta.url);
const tasks = new URL('../../../fixtures/cluster-tasks.mjs', import.meta.url);
let scene: NatsScene;

beforeEach(async () => {
  scene = await NatsScene.open();
});
afterEach(() => scene.close());

it('is listed as stuck beside its node, which goes on with another thread', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-stuck-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const cluster = scene.coordinator({ minWorkers: 1, module }, { cancelGraceMs: 10 });
  const worker = scene.spawn({ task: 0, slots: 1, module });
  await cluster.ready();
  const stuck = once(cluster, 'workerStuck');
  const told = worker.next('thread-stuck');
  const late = cluster.run('blockInNativeCode', [pipe], { timeoutMs: 1_000 });
  await expect(late).rejects.toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
  expect(await stuck).toEqual([expect.objectContaining({ task: 0, state: 'stuck', running: 0 })]);
  await told;
  expect(await cluster.run('square', [3, 0])).toBe(9);
  expect(cluster.workers).toMatchObject([
    { task: 0, state: 'idle', completed: 1 },
    { task: 0, state: 'stuck', running: 0, completed: 0 },
  ]);
  writeFileSync(pipe, ''); // ends the blocked thread
  rmSync(folder, { recursive: true });
});

it('is told by the worker when it dies, each time', async () => {
  const cluster = scene.coordinator({ minWorkers: 1, module: tasks });
  const worker = scene.spawn({ task: 0, slots: 1, module: tasks });
  for (let n = 0; n < 2; n += 1) {
    const told = worker.next('thread-lost');
    await cluster.run('answerAndDie');
    expect(await told).toMatchObject({ why: 'Worker worker:0 exited with code 7' });
  }
});
