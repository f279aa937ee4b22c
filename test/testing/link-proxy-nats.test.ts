// @module-tag nats
/** LinkProxy before a NATS server: a cluster whose coordinator has a bad link. */
import { LinkProxy } from 'allstop/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isPending } from '../support/gate.ts';
import { NatsScene, works } from '../support/nats-scene.ts';

let scene: NatsScene;
let proxy: LinkProxy;

beforeEach(async () => {
  scene = await NatsScene.open();
  proxy = await LinkProxy.open({ to: scene.server.address, latencyMs: 20 });
});

afterEach(async () => {
  await scene.close();
  await proxy[Symbol.asyncDispose]();
});

it('a coordinator gets on when its link was silent, or was cut, and is restored', async () => {
  const cluster = await scene.start(1, {}, { servers: [proxy.url] });
  expect(proxy.connections).toBeGreaterThan(0);
  await works(cluster);

  proxy.stall();
  const value = await cluster.schedule('square', [7]);
  const fetched = value.fetch();
  expect(await isPending(fetched)).toBe(true);
  proxy.restore();
  expect(await fetched).toBe(49);

  proxy.cut();
  expect(proxy.connections).toBe(0);
  const later = await cluster.schedule('square', [8]);
  proxy.restore();
  expect(await later.fetch()).toBe(64);
  await works(cluster);
});
