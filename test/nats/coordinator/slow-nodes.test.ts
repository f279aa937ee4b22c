/** Nodes that are merely slow are named, with the figures and the likely cause. */
// @module-tag nats
import { setImmediate, setTimeout } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import type { ReadinessReport } from 'allstop/cluster';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { doctor } from '../../support/nats-doctor.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { untilReport } from '../../support/not-ready.ts';

let scene: NatsScene;

beforeEach(async () => {
  scene = await NatsScene.open();
});
afterEach(() => scene.close());

const isSlow = ({ ready, tasks }: ReadinessReport, why: RegExp): boolean =>
  ready && why.test(tasks[0]?.cause ?? '') && tasks[0]?.remedy !== undefined;

it('a node behind a slow network is ready, with the round trip as the cause', async () => {
  const proxy = await scene.proxy();
  const cluster = scene.coordinator();
  scene.spawn({ servers: proxy.address });
  await cluster.ready();
  proxy.latencyMs = 200;
  await untilReport(cluster, (report) =>
    isSlow(report, /^the node is slow \(round trip \d{3} ms, .*\): the network .* is slow$/),
  );
  expect(cluster.workers[0]?.health?.roundTripMs).toBeGreaterThan(300);
  const { stdout } = await doctor(['--servers', scene.server.address, '--cluster', 'test']);
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(/the node is slow \(round trip \d+ ms/);
});

it.each(['coordinator', 'node'])(
  'doctor waits for a %s behind a slow network, though others reply at once',
  async (slow) => {
    const proxy = await scene.proxy();
    const behind = { servers: proxy.address };
    const cluster = scene.coordinator(slow === 'coordinator' ? behind : {});
    scene.spawn(slow === 'node' ? behind : {});
    await cluster.ready();
    const stranger = await connect({ servers: scene.server.address });
    for (const subject of ['allstop.test.who', 'allstop.test.report']) {
      stranger.subscribe(subject, { callback: (_, question) => void question.respond('{}') });
    }
    await stranger.flush();
    proxy.latencyMs = 400;
    const { stdout } = await doctor(['--servers', scene.server.address, '--cluster', 'test']);
    await stranger.close();
    const words = stdout.replaceAll(/\s+/g, ' '); // the table wraps its lines
    expect(words).toMatch(/coordinator test ok .* task worker:0 .* cores \d/);
    expect(words).not.toContain('does not answer');
  },
);

it('a node whose main thread is held up is ready, with the delay as the cause', async () => {
  const cluster = scene.coordinator();
  const { child } = scene.spawn();
  await cluster.ready();
  const over = new AbortController();
  const holding = (async () => {
    while (!over.signal.aborted) {
      child.kill('SIGSTOP');
      await setTimeout(500);
      child.kill('SIGCONT');
      await setTimeout(500);
    }
  })();
  await untilReport(cluster, (report) =>
    isSlow(report, /event loop \d{3} ms late.*(overloaded|main thread is held up)$/),
  );
  over.abort();
  await holding;
});

it('a coordinator that computes finds no node slow for that', async () => {
  const cluster = scene.coordinator();
  scene.spawn();
  await cluster.ready();
  const computingMs = 900;
  const figures: number[] = [];
  for (let turn = 0; turn < 9; turn += 1) {
    const end = performance.now() + computingMs;
    while (performance.now() < end);
    for (let n = 0; n < 20; n += 1) await setImmediate();
    figures.push(cluster.workers[0]?.health?.roundTripMs ?? 0);
  }
  // A probe whose reply waits while the coordinator computes has taken at least that long.
  expect(Math.max(...figures)).toBeLessThan(computingMs);
});
