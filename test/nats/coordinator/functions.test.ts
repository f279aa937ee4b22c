/** Workers with one --definition whose module files have different functions: a rolling update. */
// @module-tag nats
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { NatsScene } from '../../support/nats-scene.ts';

let scene: NatsScene;
afterEach(() => scene.close());

it('a call goes to a worker that has the function', { timeout: 60_000 }, async () => {
  scene = await NatsScene.open();
  const folder = mkdtempSync(join(tmpdir(), 'allstop-functions-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (name: string, code: string): URL => {
    const path = join(folder, name);
    writeFileSync(path, code);
    return pathToFileURL(path);
  };
  const add = 'export const add = (a, b) => a + b;';
  const old = write('old.mjs', add);
  const module = write('new.mjs', `${add} export const fresh = () => process.pid;`);
  const cluster = scene.coordinator({ module, definition: 'v2' });
  const first = scene.spawn({ module: old, definition: 'v2' });
  await cluster.ready();
  // While no worker has it, the error names what is there.
  await expect(cluster.run('fresh')).rejects.toThrow(/no function 'fresh'.*add/s);
  const serving = scene.spawn({ module, definition: 'v2' });
  await serving.next('serving');
  await expect.poll(() => cluster.workers[1]?.state, { timeout: 30_000 }).toBe('idle');
  const calls = Array.from({ length: 50 }, (_, n) =>
    n % 2 === 0 ? cluster.run('fresh') : cluster.run('add', [n, 1]),
  );
  const found = await Promise.all(calls);
  expect(found).toEqual(found.map((_, n) => (n % 2 === 0 ? serving.pid : n + 1)));
  // The old one has left: what the new one has counts.
  await first.kill('SIGTERM');
  expect(await cluster.run('fresh')).toBe(serving.pid);
});
