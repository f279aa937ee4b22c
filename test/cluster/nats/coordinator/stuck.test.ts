// @module-tag nats
/** A thread of a node that is blocked in native code. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NatsScene } from '../../../support/nats-scene.ts';

const module = new URL('../../../fixtures/cluster-faults.mjs', import.meta.url);
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
  scene.spawn({ task: 0, slots: 1, module });
  await cluster.ready();
  const stuck = once(cluster, 'workerStuck');
  const late = cluster.run('blockInNativeCode', [pipe], { timeoutMs: 100 });
  await expect(late).rejects.toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
  expect(await stuck).toEqual([expect.objectContaining({ task: 0, state: 'stuck', running: 0 })]);
  expect(await cluster.run('square', [3, 0])).toBe(9);
  expect(cluster.workers).toMatchObject([
    { task: 0, state: 'idle', completed: 1 },
    { task: 0, state: 'stuck', running: 0, completed: 0 },
  ]);
  writeFileSync(pipe, ''); // ends the blocked thread
  rmSync(folder, { recursive: true });
});
