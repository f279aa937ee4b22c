/** Nodes that are merely slow are named, with the figures and the likely cause. */
// @module-tag nats
import { setTimeout } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import type { ReadinessReport } from 'allstop/cluster';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
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
    proxy.latencyMs = 300;
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
  const { child } = scene.spawn();
  await cluster.ready();
  const computingMs = 900;
  const figure = (): number | undefined => cluster.workers[0]?.health?.roundTripMs;
  const anotherThan = (before: number | undefined): Promise<void> =>
    eventually(() => figure() !== undefined && figure() !== before);
  const witness = await connect({ servers: scene.server.address });
  await anotherThan(undefined); // so that no reply is on its way
  const probes = witness.subscribe('allstop.test.node.*', { max: 1 });
  await witness.flush();
  child.kill('SIGSTOP'); // so that it replies while the coordinator computes
  for await (const probe of probes) expect(probe.string()).toContain('"probe"');
  const before = figure();
  child.kill('SIGCONT');
  const end = performance.now() + computingMs;
  while (performance.now() < end);
  await anotherThan(before);
  expect(figure()).toBeLessThan(computingMs);
  await witness.close();
});
