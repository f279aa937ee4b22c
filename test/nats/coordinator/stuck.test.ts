// @module-tag nats
/** Threads of a node that are blocked in native code, or die. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LinkProxy } from 'allstop/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { outlastThePress } from '../../support/press.ts';

const module = new URL('../../fixtures/cluster-faults.mjs', import.meta.url);
const tasks = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);
let scene: NatsScene;
let folder: string;
let pipe: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'allstop-stuck-'));
  pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  scene = await NatsScene.open();
});
afterEach(async () => {
  await scene.close();
  rmSync(folder, { recursive: true });
});

it('is listed as stuck beside its node, which goes on with another thread', async () => {
  const cluster = scene.coordinator({ minWorkers: 1, module }, { cancelGraceMs: 10 });
  const worker = scene.spawn({ task: 0, slots: 1, module });
  await cluster.ready();
  const stuck = once(cluster, 'workerStuck');
  const told = worker.next('thread-stuck');
  const late = cluster.run('blockInNativeCode', [pipe], { timeoutMs: 1_000 });
  await expect(late).rejects.toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
  expect(await stuck).toEqual([expect.objectContaining({ index: 0, state: 'stuck', running: 0 })]);
  await told;
  expect(await cluster.run('square', [3, 0])).toBe(9);
  expect(cluster.workers).toMatchObject([
    { index: 0, state: 'idle', completed: 1 },
    { index: 0, state: 'stuck', running: 0, completed: 0 },
  ]);
  writeFileSync(pipe, ''); // ends the blocked thread
});

describe('does not keep its worker', () => {
  it('after a SIGTERM, when it is given up', async () => {
    const cluster = scene.coordinator({ minWorkers: 1, module }, { cancelGraceMs: 10 });
    const worker = scene.spawn({ module });
    await cluster.ready();
    const told = worker.next('thread-stuck');
    const late = cluster.run('blockInNativeCode', [pipe], { timeoutMs: 100 });
    await expect(late).rejects.toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
    await told;
    expect(await cluster.run('square', [3, 0])).toBe(9);
    expect(await worker.kill('SIGTERM')).toEqual([143, null]);
  });

  it('after a second SIGTERM, when it runs', () => endsAfterTwo('SIGTERM', 0));
  it.each([
    ['SIGINT', 0],
    ['SIGTERM', 400], // something is to be sent while the connection is closed
  ] as const)('after a second %s, when it runs, %d ms away', { tags: 'long' }, endsAfterTwo);

  async function endsAfterTwo(signal: 'SIGTERM' | 'SIGINT', latencyMs: number): Promise<void> {
    await using proxy = await LinkProxy.open({ to: scene.server.address, latencyMs });
    const cluster = scene.coordinator({ minWorkers: 1, module });
    const worker = scene.spawn({ module, servers: proxy.url });
    cluster.run('blockInNativeCode', [pipe]).catch(() => {});
    let writer = 0;
    const { O_WRONLY, O_NONBLOCK } = constants;
    await eventually(() => {
      try {
        writer = openSync(pipe, O_WRONLY | O_NONBLOCK);
      } catch {} // ENXIO: nobody reads
      return writer !== 0;
    });
    const leaving = worker.next('leaving');
    void worker.kill(signal);
    expect(await leaving).toMatchObject({ running: 1 });
    await outlastThePress();
    expect(await worker.kill('SIGTERM')).toEqual([signal === 'SIGINT' ? 130 : 143, null]);
    expect(worker.output).toEqual([]);
    closeSync(writer);
  }

  it('and an uncaught error after a signal is on standard error all the same', async () => {
    const late =
      'process.on("SIGTERM", () => setImmediate(() => { throw new RangeError("late") }))';
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(late)}` };
    const cluster = scene.coordinator({ minWorkers: 1, module });
    const worker = scene.spawn({ module, env });
    await cluster.ready();
    const [code] = await worker.kill('SIGTERM');
    expect(code).toBe(1);
    await eventually(() => worker.output.includes('RangeError: late')); // it may come after the exit
    expect(worker.output.filter((line) => line === 'RangeError: late')).toHaveLength(1);
  });
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
