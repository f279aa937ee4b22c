// @module-tag nats
/** Checkpoints in a bucket of JetStream: what a program saved is what another machine finds. */

import { jetstream } from '@nats-io/jetstream';
import { type ObjectStore, Objm } from '@nats-io/obj';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import {
  Checkpoint,
  type CheckpointOptions,
  ClusterCoordinator,
  LocalStrategy,
} from 'allstop/cluster';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NatsScene } from '../../../support/nats-scene.ts';
import { warningsDuring } from '../../../support/warnings.ts';
import { module } from '../../variables/stories.ts';

const bucket = 'training';
let scene: NatsScene;
let nats: NatsConnection | undefined;
beforeEach(async () => (scene = await NatsScene.open()));
afterEach(async () => {
  await nats?.close();
  nats = undefined;
  await scene.close();
});

const start = (cluster = 'test'): ClusterCoordinator => {
  scene.spawn({ module, cluster, job: 'ps' });
  return scene.coordinator({ module, cluster, minWorkers: 0 });
};

/** The bucket, as another client sees it. */
async function objects(): Promise<ObjectStore> {
  nats ??= await connect({ servers: scene.addresses });
  return await new Objm(jetstream(nats)).open(bucket);
}

const namesOf = async (store: ObjectStore): Promise<string[]> =>
  (await store.list()).filter(({ deleted }) => !deleted).map(({ name }) => name);

it('gives variables and state back to a program on another machine', async () => {
  const first = start();
  const [sum, large] = [
    await first.variable('sum', 1),
    await first.variable('large', new Float64Array(300_000).fill(2)),
  ];
  const checkpoint = new Checkpoint(first, {
    bucket,
    keep: 2,
    state: () => new Map([['epoch', 3n]]),
  });
  expect(await checkpoint.save(7)).toBe('training/checkpoint-0000000001-7');
  for (const step of [8, 9]) {
    await sum.assign(step);
    await checkpoint.save(step);
  }
  expect(await namesOf(await objects())).toEqual([
    'checkpoint-0000000002-8',
    'checkpoint-0000000003-9',
  ]);
  await large.assignAdd(new Float64Array(300_000));
  await first.close();
  const second = start('another');
  const [again, whole] = [
    await second.variable('sum', 0),
    await second.variable('large', new Float64Array(300_000)),
  ];
  const loaded: unknown[] = [];
  const load = (state: unknown): void => void loaded.push(state);
  expect(await new Checkpoint(second, { bucket, load }).restoreLatest()).toBe(9);
  expect(await again.read()).toBe(9);
  expect((await whole.read()).every((each) => each === 2)).toBe(true);
  expect(loaded).toEqual([new Map([['epoch', 3n]])]);
});

it('skips what is damaged or foreign, with a warning that names it', async () => {
  const cluster = start();
  const sum = await cluster.variable('sum', 1);
  const checkpoint = new Checkpoint(cluster, { bucket });
  expect(await checkpoint.restoreLatest()).toBe(undefined);
  await checkpoint.save(1);
  await sum.assign(2);
  await checkpoint.save(2);
  const store = await objects();
  const whole = (await store.getBlob('checkpoint-0000000002-2')) as Uint8Array;
  const damages = [
    whole.subarray(0, whole.length - 1),
    whole.map((byte, at) => (at === whole.length - 3 ? byte ^ 1 : byte)),
    Buffer.concat([whole, whole]),
    Buffer.from('no checkpoint'),
    new Uint8Array(0),
  ];
  for (const damaged of damages) {
    await store.putBlob({ name: 'checkpoint-0000000002-2' }, damaged);
    let restored: number | undefined;
    const warnings = await warningsDuring(async () => {
      restored = await checkpoint.restoreLatest();
    });
    expect(restored).toBe(1);
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The checkpoint training\/checkpoint-0000000002-2 is skipped: /),
    ]);
    expect(await sum.read()).toBe(1);
  }
});

it('works without variables, before the first connection, and across a restart of the server', async () => {
  const cluster = scene.coordinator({ module, minWorkers: 0 });
  let state: unknown = 'first';
  const checkpoint = new Checkpoint(cluster, {
    bucket,
    state: () => state,
    load: (saved) => void (state = saved),
  });
  expect(await checkpoint.restoreLatest()).toBe(undefined);
  await checkpoint.save(1);
  await scene.server.kill();
  state = 'second';
  await scene.server.restart();
  await expect.poll(() => checkpoint.save(2).catch(() => undefined)).toMatch(/-2$/);
  state = 'third';
  expect(await checkpoint.restoreLatest()).toBe(2);
  expect(state).toBe('second');
});

it('that cannot be written says so', async () => {
  const cluster = scene.coordinator({ module, minWorkers: 0 });
  const checkpoint = new Checkpoint(cluster, { bucket, state: () => 1 });
  await checkpoint.save(1);
  await cluster.close();
  await expect(checkpoint.save(2)).rejects.toMatchObject({
    code: 'ERR_ALLSTOP_UNAVAILABLE',
    message: expect.stringMatching(
      /^The checkpoints in the bucket 'training' could not be written: .*the cluster was closed/,
    ),
  });
});

it('is refused for a cluster without NATS, with a folder, and with an odd name', async () => {
  await using local = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
  const make = (options: unknown, cluster = scene.coordinator({ module })) =>
    expect(() => new Checkpoint(cluster, options as CheckpointOptions));
  make({ bucket }, local).toThrow(
    expect.objectContaining({
      code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
      message: 'options.bucket needs a cluster with a NatsStrategy: use options.directory',
    }),
  );
  const invalid = { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' };
  make({ bucket, directory: 'x' }).toThrow(expect.objectContaining(invalid));
  make({ bucket: 'a b' }).toThrow(expect.objectContaining(invalid));
  make({ bucket: 5 }).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
});
