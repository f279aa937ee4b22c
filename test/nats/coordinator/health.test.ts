/** `allstop worker --health PORT`. */
// @module-tag nats
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { NatsScene } from '../../support/nats-scene.ts';
import type { NatsWorker } from '../../support/nats-worker.ts';
import { Visits } from '../../support/visits.ts';

let scene: NatsScene;
const visits = new Visits();
beforeEach(async () => {
  await visits.open();
  scene = await NatsScene.open();
});
afterEach(async () => {
  await scene.close();
  await visits.close();
});

it('a worker says how it is, from its start to its end', { timeout: 60_000 }, async () => {
  const worker: NatsWorker = scene.spawn({ health: 0, env: { ALLSTOP_TEST_IMPORT_MS: '1500' } });
  const { port } = await worker.next('health');
  const ask = async (path: string): Promise<[status: number, text: string]> => {
    const answer = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    return [answer.status, await answer.text()];
  };
  const session = worker.next('session');
  await expect.poll(() => ask('/readyz'), { timeout: 30_000 }).toEqual([200, 'ok\n']);
  expect(await ask('/livez')).toEqual([200, 'ok\n']);
  expect((await ask('/else'))[0]).toBe(404);
  const cluster = scene.coordinator();
  await session;
  expect(await ask('/readyz')).toEqual([503, 'importing the module\n']);
  await cluster.ready();
  expect((await ask('/readyz'))[0]).toBe(200);
  await cluster.run('square', [2]);
  await cluster.run('fail', ['no']).catch(() => {});
  const held = cluster.run('holdAndSay', [visits.path, 'a']);
  const visit = await visits.next('a');
  const [, metrics] = await ask('/metrics');
  expect(metrics.split('\n')).toEqual(
    expect.arrayContaining([
      'allstop_worker_calls_total{function="square",outcome="ok"} 1',
      'allstop_worker_calls_total{function="fail",outcome="error"} 1',
      'allstop_worker_running 1',
      'allstop_worker_connected 1',
      'allstop_worker_leaving 0',
    ]),
  );
  await scene.server.kill();
  await expect
    .poll(() => ask('/readyz'), { timeout: 30_000 })
    .toEqual([503, 'not connected to a server\n']);
  const connected = worker.next('connected');
  await scene.server.restart();
  await connected;
  expect((await ask('/readyz'))[0]).toBe(200);
  const leaving = worker.next('leaving');
  const ended = worker.kill('SIGTERM');
  await leaving;
  expect(await ask('/readyz')).toEqual([503, 'leaving\n']);
  visit.pass();
  await held;
  expect(await ended).toEqual([143, null]);
});

it('a port that is taken ends it with 1', async () => {
  const taken = createServer();
  await once(taken.listen(0), 'listening');
  onTestFinished(() => void taken.close());
  const worker = scene.spawn({ health: (taken.address() as AddressInfo).port });
  const [code] = (await once(worker.child, 'exit')) as [number];
  expect(code).toBe(1);
  expect(worker.events.at(-1)).toMatchObject({
    event: 'failed',
    why: expect.stringContaining('port'),
  });
});
