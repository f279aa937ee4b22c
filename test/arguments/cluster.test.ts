/** The arguments that a cluster refuses, and the codes of the errors. */

import {
  ClusterCoordinator,
  FailedPreconditionError,
  LocalStrategy,
  PerWorkerDataset,
  PerWorkerValues,
  RemoteValue,
  transfer,
} from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { beforeEach, describe, expect, it } from 'vitest';
import { errorOf, type Kind, kinds, module, useClusters } from '../support/clusters.ts';

describe('bad input', () => {
  const { start } = useClusters(kinds[0] as Kind);
  const strategy = (): LocalStrategy => new LocalStrategy({ module, workers: 1 });
  let cluster: ClusterCoordinator;

  beforeEach(() => {
    cluster = start();
  });

  const type = 'ERR_INVALID_ARG_TYPE';
  const value = 'ERR_INVALID_ARG_VALUE';
  const range = 'ERR_OUT_OF_RANGE';
  const buffer = new ArrayBuffer(8);

  it.each<[string, () => unknown, string]>([
    ['no options', () => new (LocalStrategy as any)(), type],
    ['no module', () => new LocalStrategy({} as any), type],
    ['a path', () => new LocalStrategy({ module: '/tasks.mjs' as any }), type],
    ['workers as text', () => new LocalStrategy({ module, workers: '1' as any }), type],
    ['no workers', () => new LocalStrategy({ module, workers: 0 }), range],
    ['a part of a worker', () => new LocalStrategy({ module, workers: 1.5 }), range],
    ['too many workers', () => new LocalStrategy({ module, workers: 1e6 }), range],
    ['NaN workers', () => new LocalStrategy({ module, workers: Number.NaN }), range],
    ['an unknown isolation', () => new LocalStrategy({ module, isolation: 'vm' as any }), value],
    ['no strategy', () => new (ClusterCoordinator as any)(), type],
    ['another strategy', () => new ClusterCoordinator({} as any), type],
    ['options', () => new ClusterCoordinator(strategy(), 1 as any), type],
    [
      'maxQueued as text',
      () => new ClusterCoordinator(strategy(), { maxQueued: '1' as any }),
      type,
    ],
    ['maxQueued 0', () => new ClusterCoordinator(strategy(), { maxQueued: 0 }), range],
    ['maxQueued NaN', () => new ClusterCoordinator(strategy(), { maxQueued: Number.NaN }), range],
    ['retries as text', () => new ClusterCoordinator(strategy(), { retries: '1' as any }), type],
    ['retries -1', () => new ClusterCoordinator(strategy(), { retries: -1 }), range],
    ['retries 1.5', () => new ClusterCoordinator(strategy(), { retries: 1.5 }), range],
    ['a grace -1', () => new ClusterCoordinator(strategy(), { cancelGraceMs: -1 }), range],
    ['a grace NaN', () => new ClusterCoordinator(strategy(), { cancelGraceMs: Number.NaN }), range],
    ['transfer of nothing', () => transfer(1 as any, []), type],
    ['transfer without a list', () => transfer({}, {} as any), type],
    ['transfer of a view', () => transfer({}, [new Uint8Array(1)] as any), type],
    ['transfer of a Buffer', () => transfer({}, [Buffer.alloc(1)] as any), type],
    ['transfer of one buffer twice', () => transfer({}, [buffer, buffer]), value],
    ['a data set of nothing', () => cluster.createPerWorkerDataset(1 as any), type],
    ['arguments of a data set', () => cluster.createPerWorkerDataset('numbers', 1 as any), type],
  ])('%s is refused at once', (_what, call, code) => {
    let error: any;
    try {
      call();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(code === range ? RangeError : TypeError);
    expect(error.code).toBe(code);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['no function', () => (cluster.schedule as any)(), type],
    ['a number as a function', () => cluster.schedule(1 as any), type],
    ['arguments that are no array', () => cluster.schedule('add', 1 as any), type],
    ['arguments that are null', () => cluster.schedule('add', null as any), type],
    ['options', () => cluster.schedule('add', [1, 2], 1 as any), type],
    ['timeoutMs', () => cluster.schedule('add', [1, 2], { timeoutMs: '1' as any }), type],
    ['timeoutMs -1', () => cluster.schedule('add', [1, 2], { timeoutMs: -1 }), range],
    ['timeoutMs NaN', () => cluster.schedule('add', [1, 2], { timeoutMs: Number.NaN }), range],
    ['a signal', () => cluster.schedule('add', [1, 2], { signal: {} as any }), type],
    ['options of ready', () => cluster.ready(1 as any), type],
    ['timeoutMs of ready', () => cluster.ready({ timeoutMs: -1 }), range],
    ['the signal of ready', () => cluster.ready({ signal: 1 as any }), type],
    ['onProgress', () => cluster.ready({ onProgress: 1 as any }), type],
    ['options of fetch', async () => (await cluster.schedule('add', [1, 2])).fetch(1 as any), type],
    [
      'timeoutMs of fetch',
      async () => (await cluster.schedule('add', [1, 2])).fetch({ timeoutMs: -1 }),
      range,
    ],
  ])('%s is a rejection', async (_what, call, code) => {
    const error = await errorOf(call());
    expect(error).toBeInstanceOf(code === range ? RangeError : TypeError);
    expect(error.code).toBe(code);
    await cluster.join();
  });

  it('arguments that are written one by one are refused as such, not as options', async () => {
    expect((await errorOf((cluster.run as any)('add', 1, 2))).message).toBe(
      'The "args" argument must be an instance of Array. Received type number (1): write the arguments as one array',
    );
  });

  it.each([
    ['a LocalStrategy', strategy],
    ['a NatsStrategy', () => new NatsStrategy({ module, servers: '127.0.0.1:1', cluster: 'c' })],
  ])('%s of another ClusterCoordinator is refused, and that one goes on', async (_what, make) => {
    const one = make();
    const first = new ClusterCoordinator(one);
    const workers = first.workers.length;
    expect(() => new ClusterCoordinator(one)).toThrow(FailedPreconditionError);
    expect(first.workers).toHaveLength(workers);
    expect(first.coordinator.shouldStop()).toBe(false);
    await first.close();
    expect(() => new ClusterCoordinator(one)).toThrow(FailedPreconditionError);
  });

  it.each([
    [RemoteValue, /^Illegal constructor: a RemoteValue is made by cluster\.schedule\(/],
    [PerWorkerValues, /^Illegal constructor: PerWorkerValues are made by the iterator\(\)/],
    [PerWorkerDataset, /^Illegal constructor: .* made by cluster\.createPerWorkerDataset\(/],
  ])('a program cannot make a %o itself', (Class, message) => {
    for (const args of [[], [() => {}], [{}, 1]]) {
      expect(() => Reflect.construct(Class, args)).toThrow(
        expect.objectContaining({
          name: 'TypeError',
          code: 'ERR_ILLEGAL_CONSTRUCTOR',
          message: expect.stringMatching(message),
        }),
      );
    }
  });

  it('options that are refused leave the strategy for another try', async () => {
    const one = strategy();
    expect(() => new ClusterCoordinator(one, { maxQueued: 0 })).toThrow(RangeError);
    const second = new ClusterCoordinator(one);
    expect(await (await second.schedule('add', [1, 2])).fetch()).toBe(3);
    await second.close();
  });

  it('a task in the place of the function is told where arguments go', async () => {
    const error = await cluster.run({ width: 1 } as any).catch((refusal: unknown) => refusal);
    expect(error).toMatchObject({
      code: type,
      message: expect.stringContaining("run('name', [task])"),
    });
  });

  it('an empty options object counts as no options, and undefined is left out', async () => {
    await cluster.schedule('add', [1, 2], {});
    await cluster.schedule('add', [1, 2], { timeoutMs: undefined, signal: undefined });
    await cluster.schedule('nothing', undefined, undefined);
    await cluster.ready({ timeoutMs: undefined });
    await cluster.join();
  });
});

describe('an option that a class of the program gives', () => {
  const { start } = useClusters(kinds[0] as Kind);
  class Options {
    get signal(): AbortSignal {
      return AbortSignal.abort('enough');
    }
  }
  const options = new Options();

  it.each<[string, (cluster: ClusterCoordinator) => Promise<unknown>]>([
    ['run()', (cluster) => cluster.run('echo', [1], options)],
    ['map()', (cluster) => cluster.map('echo', [1], options).next()],
    ['schedule()', async (cluster) => (await cluster.schedule('echo', [1], options)).fetch()],
    ['ready()', (cluster) => cluster.ready(options)],
  ])('is taken by %s', async (_, call) => {
    expect(await errorOf(call(start()))).toBe('enough');
  });
});
