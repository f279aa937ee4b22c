/** Stories about variables that hold wherever their values are. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { Checkpoint, type ClusterCoordinator, Variable } from 'allstop/cluster';
import { expect, test } from 'vitest';
import { type CounterEvent, faultsOf } from '../../support/counter-history.ts';

export const module: URL = new URL('../../fixtures/cluster-variables.mjs', import.meta.url);

const closed = {
  code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
  message: 'The cluster is closed: make a new one',
};

/** @param start - starts a cluster of `module` with this number of workers (2) */
export function variableStories(
  start: (workers?: number) => ClusterCoordinator | Promise<ClusterCoordinator>,
): void {
  test('functions add to a number, and the coordinator reads the sum', async () => {
    await using cluster = await start();
    const sum = await cluster.variable('sum', 10);
    for (let at = 0; at < 100; at++) await cluster.schedule('add', [sum, 1]);
    await sum.assignAdd(0.5);
    await cluster.join();
    expect(await sum.read()).toBe(110.5);
    expect(sum.name).toBe('sum');
    expect(sum).toBeInstanceOf(Variable);
  });

  test("the examples of TensorFlow's page of ClusterCoordinator", async () => {
    await using cluster = await start();
    // create_per_worker_dataset
    const threes = cluster.createPerWorkerDataset<number>('threes').iterator();
    const value = await cluster.schedule<any>('workerFn', [threes]);
    expect(await value.fetch()).toBe(3);
    // fetch
    const v = await cluster.variable('v', 0);
    const ones = cluster.createPerWorkerDataset<number>('ones').iterator();
    const result = await cluster.schedule<any>('replicaFn', [v, ones]);
    expect(await cluster.fetch(result)).toBe(1);
    const more = [
      await cluster.schedule<any>('replicaFn', [v, ones]),
      await cluster.schedule<any>('replicaFn', [v, ones]),
    ];
    await cluster.join();
    expect(await cluster.done()).toBe(true);
    expect(new Set(await cluster.fetch(more))).toContain(3);
    // "The program will [...] continue the progress from a checkpoint."
    const directory = await mkdtemp(join(tmpdir(), 'allstop-page-'));
    await new Checkpoint(cluster, { directory }).save(3);
    await cluster.close();
    await using again = await start();
    const restored = await again.variable('v', 0);
    expect(await new Checkpoint(again, { directory }).restoreLatest()).toBe(3);
    const next = again.createPerWorkerDataset<number>('ones').iterator();
    expect(await (await again.schedule<any>('replicaFn', [restored, next])).fetch()).toBe(4);
    await rm(directory, { recursive: true });
  });

  test('each type of array is read and added to, and the reader gets a copy', async () => {
    await using cluster = await start(1);
    for (const initial of [
      new Float64Array([1, 2]),
      new Float32Array([1, 2]),
      new Int32Array([1, 2]),
    ]) {
      const weights = await cluster.variable(`weights ${initial.constructor.name}`, initial);
      initial[0] = 99;
      const one = Reflect.construct(initial.constructor, [[1, 1]]) as typeof initial;
      await cluster.run('add', [weights, one]);
      const got = await cluster.run<any>('read', [weights]);
      expect(got).toBeInstanceOf(initial.constructor);
      expect([...got]).toEqual([2, 3]);
      const own = await weights.read();
      expect(own.buffer.byteLength).toBe(own.byteLength); // memory of nothing else
      got[0] = 7;
      expect([...(await weights.read())]).toEqual([2, 3]);
      await cluster.run('set', [weights, one]);
      expect([...(await weights.read())]).toEqual([1, 1]);
    }
  });

  test('a part of a larger array, also of shared memory, is assigned and added', async () => {
    await using cluster = await start(1);
    const weights = await cluster.variable('weights', new Float64Array(2));
    expect(await cluster.run('assignParts', [weights])).toBe('done');
    expect([...(await weights.read())]).toEqual([2 + 5, 3 + 6]);
  });

  test('a variable is found by its name, also one that was made after the worker', async () => {
    await using cluster = await start(1);
    await cluster.ready();
    const sum = await cluster.variable('sum', 0);
    await cluster.run('addNamed', ['sum', 3]);
    expect(await sum.read()).toBe(3);
    await expect(cluster.run('addNamed', ['other', 3])).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
      message: expect.stringContaining("no variable 'other'"),
    });
  });

  test('a data set function gets variables, too', async () => {
    await using cluster = await start(1);
    const sum = await cluster.variable('sum', 5);
    const iterator = cluster.createPerWorkerDataset('sums', [{ sum }]).iterator();
    expect(await cluster.run('next', [iterator])).toBe(5);
    await sum.assign(6);
    expect(await cluster.run('next', [iterator])).toBe(6);
  });

  test('variables travel anywhere in the arguments', async () => {
    await using cluster = await start(1);
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => cluster.variable(name, 0)));
    const args = [{ list: [a], byName: new Map([['b', b]]), all: new Set([c, a]) }];
    expect(await cluster.run('addNested', args)).toEqual(['a', 'b', 'c', 'a']);
    expect(await a?.read()).toBe(2);
    expect(await c?.read()).toBe(1);
  });

  test('a function whose worker dies adds once, though it is run again', async () => {
    await using cluster = await start(1);
    const sum = await cluster.variable('sum', 0);
    await Promise.all(Array.from({ length: 3 }, () => cluster.run('addAndDie', [sum])));
    expect(await sum.read()).toBe(6);
  });

  test('additions and reads happen one after the other, though workers die', async () => {
    await using cluster = await start(4);
    const sum = await cluster.variable('sum', 0);
    const calls = Array.from({ length: 24 }, (_, at) =>
      cluster.run<any>('addAndRead', [sum, 20, at % 6 === 0]),
    );
    const own: CounterEvent[] = [];
    const clock = (): number => Number(process.hrtime.bigint());
    for (let read = 0; read < 50; read++) {
      const begin = clock();
      const value = await sum.read();
      own.push({ kind: 'read', begin, end: clock(), value });
      await setImmediate();
    }
    const history = [...own, ...(await Promise.all(calls)).flat()];
    expect(faultsOf(history)).toEqual([]);
    expect(history.filter(({ kind }) => kind === 'add')).toHaveLength(480);
    expect(await sum.read()).toBe(480);
  });

  test('an assignAdd after its function has ended is refused', async () => {
    await using cluster = await start(1);
    const sum = await cluster.variable('sum', 0);
    const errors = await cluster.variable('errors', 0);
    await cluster.run('addTooLate', [sum, errors]);
    await expect.poll(() => errors.read()).toBe(1);
    expect(await sum.read()).toBe(0);
  });

  test('a value that does not fit is refused, at both ends, and changes nothing', async () => {
    await using cluster = await start(1);
    const number = await cluster.variable('number', 1);
    const array = await cluster.variable('array', new Float64Array(2));
    const wrong = array as Variable<any>;
    const invalidType = { code: 'ERR_INVALID_ARG_TYPE' };
    const invalid = { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' };
    await expect((number as Variable<any>).assign('2')).rejects.toMatchObject(invalidType);
    await expect((number as Variable<any>).assignAdd(undefined)).rejects.toMatchObject(invalidType);
    await expect(wrong.assign(new Float32Array(2))).rejects.toMatchObject(invalidType);
    await expect(wrong.assign(new Float64Array(3))).rejects.toMatchObject({
      ...invalid,
      message: "The variable 'array' is a Float64Array of 2 elements: a value of 3 does not fit",
    });
    expect(await cluster.run('refused', [array, new Float64Array(3)])).toBe(invalid.code);
    expect(await cluster.run('refused', [array, 5])).toBe(invalidType.code);
    expect([...(await array.read())]).toEqual([0, 0]);
  });

  test('the same definition gives the same variable, another one is refused', async () => {
    await using cluster = await start(1);
    const sum = await cluster.variable('sum', 5);
    await sum.assignAdd(1);
    expect(await cluster.variable('sum', 0)).toBe(sum);
    expect(await sum.read()).toBe(6);
    await expect(cluster.variable('sum', new Int32Array(1))).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
      message: expect.stringContaining(
        "The variable 'sum' is a number, not an Int32Array of 1 element:",
      ),
    });
  });

  test('wrong arguments are refused', async () => {
    await using cluster = await start(1);
    const make = cluster.variable.bind(cluster) as (...args: unknown[]) => Promise<unknown>;
    await expect(make(5, 0)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    await expect(make('', 0)).rejects.toMatchObject({ code: 'ERR_ALLSTOP_INVALID_ARGUMENT' });
    await expect(make('a', 5n)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    await expect(make('a', new Uint8Array(3))).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_TYPE',
    });
    await expect(make('a', 0, { pss: 1 })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    await expect(make('a', 0, { ps: -1 })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  });

  test('an array counts as what it is, not as what it says that it is', async () => {
    await using cluster = await start(1);
    const weights = await cluster.variable('weights', new Float64Array([1, 2]));
    const { prototype } = Float64Array;
    const wrong = { code: 'ERR_INVALID_ARG_TYPE' };
    for (const value of [
      Object.setPrototypeOf(new Int8Array(2), prototype),
      Object.create(prototype),
      new Proxy(new Float64Array(2), {}),
    ]) {
      await expect(weights.assign(value)).rejects.toMatchObject(wrong);
      await expect(weights.assignAdd(value)).rejects.toMatchObject(wrong);
      await expect(cluster.variable('other', value)).rejects.toMatchObject(wrong);
    }
    const single = Object.setPrototypeOf(new Float32Array(2), prototype);
    await expect(weights.assign(single)).rejects.toMatchObject(wrong);
    const long = Object.defineProperty(new Float64Array(1_000), 'length', { value: 2 });
    await expect(weights.assign(long)).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
      message: expect.stringContaining('a value of 1000 does not fit'),
    });
    const foreign = runInNewContext('Float64Array.of(3, 4)') as typeof long;
    await weights.assignAdd(foreign);
    expect([...(await weights.read())]).toEqual([4, 6]);
  });

  test('a variable cannot be renamed, nor made when the cluster is closed', async () => {
    const cluster = await start(1);
    const sum = await cluster.variable('sum', 0);
    expect(() => Object.assign(sum, { name: 'other' })).toThrow(TypeError);
    await cluster.close();
    await expect(cluster.variable('late', 0)).rejects.toMatchObject(closed);
  });

  test('each operation is refused when the cluster is closed, and a checkpoint, too', async () => {
    const cluster = await start(1);
    const sum = await cluster.variable('sum', 1);
    const directory = await mkdtemp(join(tmpdir(), 'allstop-closed-'));
    const checkpoint = new Checkpoint(cluster, { directory });
    await checkpoint.save(1);
    await cluster.close();
    for (const refused of [
      () => sum.read(),
      () => sum.assign(1),
      () => sum.assignAdd(1),
      () => checkpoint.save(2),
      () => checkpoint.restoreLatest(),
    ]) {
      await expect(refused()).rejects.toMatchObject(closed);
    }
    await rm(directory, { recursive: true });
  });

  test('only cluster.variable makes a variable', () => {
    expect(() => Reflect.construct(Variable, ['x'])).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ILLEGAL_CONSTRUCTOR',
        message: 'Illegal constructor: a Variable is made by cluster.variable(name, initial)',
      }),
    );
  });

  test('a variable is an argument in its own cluster only, and no result', async () => {
    await using cluster = await start(1);
    await using other = await start(1);
    const sum = await cluster.variable('sum', 0);
    const invalid = { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' };
    await expect(other.run('read', [sum])).rejects.toMatchObject(invalid);
    expect(() => structuredClone(sum)).toThrow(expect.objectContaining(invalid));
  });
}
