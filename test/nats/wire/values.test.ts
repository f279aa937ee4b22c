/** Big and deeply nested values: the main thread of a node passes them on without reading them. */
// @module-tag nats
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nested, objects } from '../../fixtures/cluster-tasks.mjs';
import { errorOf } from '../../support/clusters.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

const isSoak = process.env['ALLSTOP_SOAK'] !== undefined;
/** A node that reads this many objects on its main thread would be silent for too long. */
const COUNT = 1_000_000;
const MANY_MS = 180_000;
const TOO_LONG = 1024 ** 3;
const tooLong = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };

let scene: NatsScene;

beforeEach(async () => {
  scene = await NatsScene.open();
});

afterEach(() => scene.close());

const undisturbed = { engine: { restarts: 0, nodesLost: 0 } };

describe('what takes seconds to pack does not make a node look dead', { tags: 'long' }, () => {
  it('as a result', { timeout: MANY_MS }, async () => {
    const cluster = await scene.start(1, { retries: 0 });
    const value = await cluster.schedule('objects', [0.6 * COUNT]);
    expect(await value.fetch()).toHaveLength(0.6 * COUNT);
    expect(cluster.stats()).toMatchObject(undisturbed);
  });

  it('as an argument', { timeout: MANY_MS }, async () => {
    const cluster = await scene.start(1, { retries: 0 });
    const value = await cluster.schedule('countOf', [objects(COUNT)]);
    expect(await value.fetch()).toBe(COUNT);
    expect(cluster.stats()).toMatchObject(undisturbed);
  });

  it.runIf(isSoak)('as an argument of a data set', { timeout: MANY_MS }, async () => {
    const cluster = await scene.start(1, { retries: 0 });
    const dataset = cluster.createPerWorkerDataset('echo', [objects(COUNT)]);
    const value = await cluster.schedule('next', [dataset.iterator()]);
    expect(await value.fetch()).toMatchObject({ value: { id: 0 } });
    expect(cluster.stats()).toMatchObject(undisturbed);
  });
});

it('what is nested too deeply is an error of one function, and its thread lives on', async () => {
  const cluster = await scene.start(1, { retries: 0 });
  const where = async (): Promise<unknown> => await (await cluster.schedule('where')).fetch();
  const place = await where();
  for (const depth of [5_000, 100_000]) {
    const value = await cluster.schedule('nested', [depth]);
    const error = await errorOf(value.fetch());
    expect(['DataCloneError', 'RangeError']).toContain(error.name);
    expect(error.message).toContain('Maximum call stack size exceeded');
    expect(await errorOf(cluster.join())).toBe(error);
    // As an argument the value fails in the caller's thread, which has a smaller stack.
    await expect(cluster.schedule('depthOf', [nested(depth)])).rejects.toThrow('call stack');
    expect(await where()).toEqual(place);
  }
  const deep = await cluster.schedule('depthOf', [nested(500)]);
  expect(await deep.fetch()).toBe(500);
  expect(cluster.stats()).toMatchObject(undisturbed);
});

it('results that are long together come in several messages, each in its place', async () => {
  const cluster = await scene.start(1, { retries: 0 });
  const lengths = Array.from({ length: 100 }, (_, n) => (n % 4 === 0 ? 40_000 : n));
  const values = [];
  for (const length of lengths) values.push(await cluster.schedule('bytesOf', [length]));
  const results = (await cluster.fetch(values)) as Uint8Array[];
  for (const [n, length] of lengths.entries()) {
    expect(Buffer.compare(results[n] as Uint8Array, new Uint8Array(length).fill(length))).toBe(0);
  }
});

it('arguments that were moved to a thread which is busy get to one that is not', async () => {
  const visits = new Visits();
  await visits.open();
  const cluster = scene.coordinator({ minWorkers: 1 }, { retries: 0 });
  scene.spawn({ slots: 2 });
  await cluster.ready();
  for (let n = 0; n < 200; n += 1) await cluster.schedule('holdMaybe');
  await cluster.join(); // the durations measured by now are short
  const bytes = new Uint8Array(100_000);
  const names = ['a', 'b', 'c'];
  for (const name of names) await cluster.schedule('holdMaybe', [visits.path, name, bytes]);
  await visits.next('a');
  (await visits.next('b')).pass();
  (await visits.next('c')).pass(); // while 'a' still keeps its thread busy
  await visits.close();
  await cluster.join().catch(() => {}); // visits.close() has failed 'a'
  expect(cluster.stats()).toMatchObject(undisturbed);
});

describe.runIf(isSoak)('what is longer than a message may be is refused', () => {
  it('as a result, an argument and an argument of a data set', { timeout: MANY_MS }, async () => {
    const cluster = await scene.start(1, { retries: 0 });
    const result = await cluster.schedule('bytesOf', [TOO_LONG]);
    expect(await errorOf(result.fetch())).toMatchObject(tooLong);
    await errorOf(cluster.join());
    const bytes = new Uint8Array(TOO_LONG);
    const argument = await cluster.schedule('lengthOf', [bytes]);
    expect(await errorOf(argument.fetch())).toMatchObject(tooLong);
    await errorOf(cluster.join());
    const dataset = cluster.createPerWorkerDataset('echo', [bytes]);
    const value = await cluster.schedule('next', [dataset.iterator()]);
    expect(await errorOf(value.fetch())).toMatchObject({ cause: tooLong });
    await errorOf(cluster.join());
    expect(await (await cluster.schedule('square', [3])).fetch()).toBe(9);
    expect(cluster.stats()).toMatchObject(undisturbed);
  });
});
