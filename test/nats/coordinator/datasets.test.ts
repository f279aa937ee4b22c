/** Data sets on a node that runs several functions at once: one iterator for all its threads. */

import { ClosureInputError, type ClusterCoordinator, UnavailableError } from 'allstop/cluster';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';
import { isPending } from '../../support/gate.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-node-datasets.mjs', import.meta.url);

type Item = { value: unknown; done: boolean };

describe('a data set on a node with several slots', { tags: ['nats'] }, () => {
  const visits = new Visits();
  let scene: NatsScene;
  let cluster: ClusterCoordinator;
  // One node for all: each data set is another one.
  beforeAll(async () => {
    await visits.open();
    scene = await NatsScene.open();
    scene.spawn({ module, slots: 3 });
    cluster = scene.coordinator({ module });
  });
  afterAll(async () => {
    await scene.close();
    await visits.close();
  });

  const iterator = (name: string, args: unknown[] = []) =>
    cluster.createPerWorkerDataset<unknown>(name, args).iterator();
  const next = (from: unknown): Promise<Item> => cluster.run('next', [from]) as Promise<Item>;

  it('is read once: its threads take distinct items, in order', async () => {
    const numbers = iterator('numbers', [0, 9]);
    await cluster.ready();
    const held = ['a', 'b', 'c'].map((name) =>
      cluster.run('drawAndHold', [visits.path, name, numbers]),
    );
    const holding = await Promise.all(['a', 'b', 'c'].map((name) => visits.next(name)));
    for (const visit of holding) visit.pass();
    const drawn = (await Promise.all(held)) as { value: number; thread: number }[];
    expect(new Set(drawn.map(({ value }) => value))).toEqual(new Set([0, 1, 2]));
    expect(new Set(drawn.map(({ thread }) => thread)).size).toBe(3); // all three had one at once
    expect((await next(numbers)).value).toBe(3);
    expect(await cluster.run('rest', [numbers])).toEqual([4, 5, 6, 7, 8]);
    expect(await next(numbers)).toEqual({ value: undefined, done: true });
  });

  it('is made once, in a thread that runs no functions, as the node’s own worker', async () => {
    const from = iterator('maker');
    const drawn = await Promise.all(Array.from({ length: 30 }, () => next(from)));
    const makers = drawn.map(({ value }) => value as { thread: number });
    expect(new Set(makers.map((maker) => JSON.stringify(maker))).size).toBe(1);
    expect(makers[0]).toMatchObject({ worker: 0, made: 1 });
    const threads = await Promise.all(Array.from({ length: 30 }, () => cluster.run('where')));
    expect(threads).not.toContain(makers[0]?.thread);
  });

  it('gives a thousand functions each another item', async () => {
    const numbers = iterator('numbers', [0, 1_000]);
    const drawn = await Promise.all(Array.from({ length: 1_000 }, () => next(numbers)));
    const values = drawn.map(({ value }) => value as number);
    expect(values.toSorted((one, other) => one - other)).toEqual([...values.keys()]);
  });

  it('has iterators that each begin at the beginning', async () => {
    const dataset = cluster.createPerWorkerDataset('list', [0, 9]);
    const [first, second] = [dataset.iterator(), dataset.iterator()];
    expect(await cluster.run('nextOf', [first, second])).toEqual([0, 0]);
    await next(first);
    expect(await cluster.run('nextOf', [first, second])).toEqual([2, 1]);
  });

  it('is never asked for two items at once', async () => {
    const from = iterator('oneAtATime');
    const drawn = await Promise.all(Array.from({ length: 20 }, () => next(from)));
    expect(new Set(drawn.map(({ value }) => value))).toEqual(
      new Set(Array.from({ length: 20 }, (_, at) => at + 1)),
    );
  });

  it('goes on where it was when a thread dies that has drawn from it', async () => {
    const numbers = iterator('numbers', [0, 9]);
    expect((await next(numbers)).value).toBe(0);
    // The first attempt has drawn 1 and died with it: the second gets another.
    expect(await cluster.run('drawAndDie', [numbers])).toBe(2);
    expect((await next(numbers)).value).toBe(3);
  });

  it('begins anew when the thread that makes it ends, and who waited for an item fails', async () => {
    const from = iterator('endsItsThread');
    expect((await next(from)).value).toBe('first');
    const error = await errorOf(next(from));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toContain('data sets of worker:0');
    expect(error.cause.message).toContain('code 7');
    expect((await next(from)).value).toBe('first');
  });

  it('tells the function of an error while it is iterated, and has then ended', async () => {
    const from = iterator('failsAfter', [1]);
    expect((await next(from)).value).toBe(0);
    const error = await errorOf(next(from));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: 'no more data', cause: { at: 1 } });
    expect(await next(from)).toEqual({ value: undefined, done: true });
  });

  it('ends for all when a function leaves its loop', async () => {
    const numbers = iterator('numbers', [0, 9]);
    expect(await cluster.run('firstAndLeave', [numbers])).toBe(0);
    expect(await next(numbers)).toEqual({ value: undefined, done: true });
  });

  it('copies its items: one that cannot be copied is an error of its function', async () => {
    const from = iterator('functions');
    const error = await errorOf(next(from));
    expect(error.name).toBe('DataCloneError');
    expect((await next(from)).value).toBe('second');
  });

  it.each([
    ['its function throws', 'broken', 'no data'],
    ['it is not iterable', 'notIterable', 'not iterable'],
    ['there is no such function', 'missing', 'missing'],
  ])('when %s, those who use it fail with that', async (_what, name, message) => {
    const error = await errorOf(next(iterator(name)));
    expect(error).toBeInstanceOf(ClosureInputError);
    expect(error.cause.message).toContain(message);
    expect((await next(iterator('numbers', [5, 6]))).value).toBe(5);
  });

  it('when its function ends its thread, those who use it fail with that, and others go on', async () => {
    const numbers = iterator('numbers', [5, 9]);
    const error = await errorOf(next(iterator('deadly')));
    expect(error).toBeInstanceOf(ClosureInputError);
    expect(error.cause.message).toContain("The data set function 'deadly' lost its worker 4 times");
    expect(error.cause.message).toContain('exited with code 7');
    expect((await next(numbers)).value).toBe(5);
    expect((await next(iterator('numbers', [7, 9]))).value).toBe(7);
  });

  it('is waited for by ready()', async () => {
    await cluster.ready();
    cluster.createPerWorkerDataset('held', [visits.path]);
    const phases: string[] = [];
    const ready = cluster.ready({
      onProgress: ({ tasks: [task] }) => phases.push(task?.phase ?? 'none'),
    });
    const visit = await visits.next('data set');
    expect(await isPending(ready)).toBe(true);
    expect(phases).toContain('building-dataset');
    visit.pass();
    await ready;
  });

  it('holds up no close() while an item is awaited', async () => {
    const waiting = errorOf(next(iterator('held', [visits.path])));
    await visits.next('data set');
    // The thread of data sets may be faster than those that tell the names of the functions.
    await eventually(() => cluster.stats().queued + cluster.stats().inFlight === 1);
    await cluster.close();
    expect((await waiting).name).toBe('CancelledError');
  });
});
