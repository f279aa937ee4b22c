// Calls that must compile, and calls that must not: `npx tsc -p test/tsconfig.json` is the test.
// Vitest checks that the declared classes exist.

import type * as Main from 'allstop';
import {
  ClusterCoordinator,
  type ClusterNotReadyError,
  type EnginePhase,
  type Fetched,
  LocalStrategy,
  type PerWorkerDataset,
  type PerWorkerValues,
  type ReadinessReport,
  RemoteValue,
  type ScheduleArgs,
  type ScheduleOptions,
  type SettledItem,
  type StandsFor,
  type TaskPhase,
} from 'allstop/cluster';
import type * as Nats from 'allstop/nats';
import { describe, expect, expectTypeOf, it } from 'vitest';

const add = (a: number, b: number): number => a + b;
const now = (): Date => new Date();
const later = async (text: string): Promise<string[]> => [text];
const greet = (name: string, loud?: boolean): string => (loud === true ? `${name}!` : name);
const maybe = (name?: string): string | undefined => name;
const sum = (...all: number[]): number => all.length;
const thenable = (): PromiseLike<bigint> => Promise.resolve(1n);
const train = async (steps: number, data: AsyncIterator<number>): Promise<Float64Array> =>
  new Float64Array([steps, Number((await data.next()).value)]);
const digest = async (): Promise<Buffer | undefined> => Buffer.from('it arrives as bytes');
function* count(to: number): Generator<number> {
  for (let at = 0; at < to; at += 1) yield at;
}
async function* stream(): AsyncGenerator<string> {
  yield 'item';
}
const load = async (): Promise<Set<Date>> => new Set();

type Tasks = {
  add: typeof add;
  now: typeof now;
  later: typeof later;
  greet: typeof greet;
  train: typeof train;
  count: typeof count;
  VERSION: string;
};

/** Never called: only the compiler reads it. */
async function byFunction(cluster: ClusterCoordinator<Tasks>): Promise<void> {
  expectTypeOf(await cluster.schedule(add, [1, 2])).toEqualTypeOf<RemoteValue<number>>();
  expectTypeOf(await cluster.schedule(now)).toEqualTypeOf<RemoteValue<Date>>();
  expectTypeOf(await cluster.schedule(now, [])).toEqualTypeOf<RemoteValue<Date>>();
  expectTypeOf(await cluster.schedule(later, ['a'])).toEqualTypeOf<RemoteValue<string[]>>();
  expectTypeOf(await cluster.schedule(thenable)).toEqualTypeOf<RemoteValue<bigint>>();
  expectTypeOf(await cluster.run(digest)).toEqualTypeOf<Uint8Array | undefined>();
  expectTypeOf(await cluster.schedule(count, [3])).toEqualTypeOf<RemoteValue<Generator<number>>>();
  await cluster.schedule(add, [1, 2], { timeoutMs: 5, signal: AbortSignal.abort() });
  await cluster.schedule(now, undefined, { timeoutMs: 5 });
  await cluster.schedule(greet, ['a']);
  await cluster.schedule(greet, ['a', true]);
  await cluster.schedule(maybe);
  await cluster.schedule(maybe, ['a']);
  await cluster.schedule(sum, [1, 2, 3]);

  // @ts-expect-error -- its arguments are missing
  await cluster.schedule(add);
  // @ts-expect-error -- one is missing
  await cluster.schedule(add, [1]);
  // @ts-expect-error -- one is too many
  await cluster.schedule(add, [1, 2, 3]);
  // @ts-expect-error -- one is wrong
  await cluster.schedule(add, [1, '2']);
  // @ts-expect-error -- the function takes no arguments
  await cluster.schedule(now, [1]);
  // @ts-expect-error -- the optional one is wrong
  await cluster.schedule(greet, ['a', 1]);
  // @ts-expect-error -- one of the rest is wrong
  await cluster.schedule(sum, [1, 'two']);
  // @ts-expect-error -- arguments come as an array
  await cluster.schedule(greet, 'a');
  // @ts-expect-error -- there is no such option
  await cluster.schedule(now, [], { timeout: 5 });
  await cluster.schedule(greet, [await cluster.schedule(greet, ['a'])]);
}

async function byName(cluster: ClusterCoordinator<Tasks>): Promise<void> {
  expectTypeOf(await cluster.schedule('add', [1, 2])).toEqualTypeOf<RemoteValue<number>>();
  expectTypeOf(await cluster.schedule('now')).toEqualTypeOf<RemoteValue<Date>>();
  expectTypeOf(await cluster.schedule('later', ['a'])).toEqualTypeOf<RemoteValue<string[]>>();
  await cluster.schedule('greet', ['a']);
  await cluster.schedule('greet', ['a', false], { timeoutMs: 5 });

  // @ts-expect-error -- its arguments are missing
  await cluster.schedule('add');
  // @ts-expect-error -- one is missing
  await cluster.schedule('add', [1]);
  // @ts-expect-error -- one is too many
  await cluster.schedule('add', [1, 2, 3]);
  // @ts-expect-error -- one is wrong
  await cluster.schedule('add', ['1', 2]);
  // @ts-expect-error -- no function of this name
  await cluster.schedule('subtract', [1, 2]);
  // @ts-expect-error -- the export is not a function
  await cluster.schedule('VERSION');
}

async function ofAModule(cluster: ClusterCoordinator<typeof import('./types-tasks.ts')>) {
  expectTypeOf(await cluster.schedule('double', [1])).toEqualTypeOf<RemoteValue<number>>();
  // @ts-expect-error -- one is wrong
  await cluster.schedule('double', ['1']);
  // @ts-expect-error -- the export is not a function
  await cluster.schedule('limit');
}

async function ofAnyModule(cluster: ClusterCoordinator): Promise<void> {
  expectTypeOf(await cluster.schedule('anything')).toEqualTypeOf<RemoteValue<any>>();
  await cluster.schedule('anything', [1, 'two', { three: 3 }], { timeoutMs: 5 });
  expectTypeOf(await cluster.schedule(add, [1, 2])).toEqualTypeOf<RemoteValue<number>>();
  // @ts-expect-error -- a function of any module has argument types
  await cluster.schedule(add, ['1']);
  // @ts-expect-error -- neither a function nor a name
  await cluster.schedule(1);
}

async function perWorker(cluster: ClusterCoordinator<Tasks>): Promise<void> {
  const numbers = cluster.createPerWorkerDataset(count, [3]);
  expectTypeOf(numbers).toEqualTypeOf<PerWorkerDataset<number>>();
  expectTypeOf(numbers.iterator()).toEqualTypeOf<PerWorkerValues<AsyncIterator<number>>>();
  const texts = cluster.createPerWorkerDataset(stream);
  expectTypeOf(texts).toEqualTypeOf<PerWorkerDataset<string>>();
  expectTypeOf(cluster.createPerWorkerDataset(load)).toEqualTypeOf<PerWorkerDataset<Date>>();
  expectTypeOf(cluster.createPerWorkerDataset<Date>('load')).toEqualTypeOf<
    PerWorkerDataset<Date>
  >();

  const trained = await cluster.schedule(train, [1, numbers.iterator()]);
  expectTypeOf(trained).toEqualTypeOf<RemoteValue<Float64Array>>();
  await cluster.schedule('train', [1, numbers.iterator()]);
  // @ts-expect-error -- PerWorkerValues of another type
  await cluster.schedule(train, [1, texts.iterator()]);
  // @ts-expect-error -- the same by name
  await cluster.schedule('train', [1, texts.iterator()]);
  // @ts-expect-error -- a data set is not an iterator
  await cluster.schedule(train, [1, numbers]);
  // @ts-expect-error -- it is not iterable
  cluster.createPerWorkerDataset(add, [1, 2]);
}

async function fetched(
  cluster: ClusterCoordinator,
  value: RemoteValue<number>,
  text: RemoteValue<string>,
): Promise<void> {
  expectTypeOf(await value.fetch({ timeoutMs: 5 })).toEqualTypeOf<number>();
  expectTypeOf(await cluster.fetch(value)).toEqualTypeOf<number>();
  expectTypeOf(await cluster.fetch([value, value])).toEqualTypeOf<number[]>();
  expectTypeOf(await cluster.fetch([value, text] as const)).toEqualTypeOf<[number, string]>();
  expectTypeOf(await cluster.fetch({ value, deep: { text, plain: 1 } })).toEqualTypeOf<{
    value: number;
    deep: { text: string; plain: number };
  }>();
  expectTypeOf(await cluster.fetch(new Map([['a', value]]))).toEqualTypeOf<Map<string, number>>();
  expectTypeOf(await cluster.fetch(new Set([text]))).toEqualTypeOf<Set<string>>();
  // @ts-expect-error -- there is no such option
  await value.fetch({ timeout: 5 });
}

class Account {
  readonly #secret = 1;
  owner = 'somebody';
  check(): boolean {
    return this.#secret === 1;
  }
}

type Plain = {
  at: Date;
  bytes: Uint8Array;
  run: () => void;
  error: RangeError;
  pattern: RegExp;
  account: Account;
};

function notReady(
  ofCluster: ClusterNotReadyError,
  ofPackage: Main.ClusterNotReadyError,
  ofNats: Nats.ClusterNotReadyError,
): void {
  expectTypeOf(ofCluster.report).toEqualTypeOf<ReadinessReport>();
  expectTypeOf(ofPackage.report).toEqualTypeOf<Main.ReadinessReport>();
  expectTypeOf(ofNats.report).toEqualTypeOf<Nats.ReadinessReport>();
  expectTypeOf(ofPackage).toEqualTypeOf(ofCluster);
  expectTypeOf(ofNats).toEqualTypeOf(ofCluster);
  expectTypeOf(ofCluster.report.tasks[0]?.phase).toEqualTypeOf<TaskPhase | undefined>();
  expectTypeOf<Nats.TaskPhase>().toEqualTypeOf<TaskPhase>();
  expectTypeOf(ofCluster.report.engine.phase).toEqualTypeOf<EnginePhase>();
  // @ts-expect-error -- there is no such field
  void ofCluster.report.nodes;
}

/** Never called: only the compiler reads it. */
async function mapped(cluster: ClusterCoordinator<Tasks>): Promise<void> {
  const texts = ['a', 'b'];
  for await (const value of cluster.map(later, texts)) {
    expectTypeOf(value).toEqualTypeOf<string[]>();
  }
  for await (const value of cluster.map('greet', stream(), { concurrency: 2, timeoutMs: 5 })) {
    expectTypeOf(value).toEqualTypeOf<string>();
  }
  for await (const value of cluster.map(maybe, [Promise.resolve('a')], { onError: 'throw' })) {
    expectTypeOf(value).toEqualTypeOf<string | undefined>();
  }
  for await (const each of cluster.map('later', texts, { onError: 'settle', ordered: false })) {
    expectTypeOf(each).toEqualTypeOf<SettledItem<string[], string>>();
    expectTypeOf(each.item).toEqualTypeOf<string>();
    if (each.status === 'fulfilled') expectTypeOf(each.value).toEqualTypeOf<string[]>();
  }
  const first = await cluster.schedule(add, [1, 2]);
  expectTypeOf(await cluster.run(add, [first, 3])).toEqualTypeOf<number>();
  expectTypeOf(await cluster.run(add, [1, 2], { key: 'a' })).toEqualTypeOf<number>();
  expectTypeOf(await cluster.run('now', [], { key: 'a' })).toEqualTypeOf<Date>();
  // @ts-expect-error A key is text.
  await cluster.run(add, [1, 2], { key: 5 });
  // @ts-expect-error What is scheduled is not kept.
  await cluster.schedule(add, [1, 2], { key: 'a' });
  cluster.map(later, texts, { key: (text, index) => `${text.length} ${index}` });
  // @ts-expect-error The key of an item is text.
  cluster.map(later, texts, { key: (_text, index) => index });
  expectTypeOf(await cluster.schedule('add', [3, first])).toEqualTypeOf<RemoteValue<number>>();
  // @ts-expect-error -- a value of another type
  await cluster.run(later, [first]);
  const text = await cluster.schedule(greet, ['a']);
  for await (const value of cluster.map(later, [text, 'b'])) {
    expectTypeOf(value).toEqualTypeOf<string[]>();
  }
  // @ts-expect-error -- the items are of another type
  cluster.map(later, [1, 2]);
  // @ts-expect-error -- the function needs two arguments
  cluster.map(add, [1]);
  // @ts-expect-error -- there is no such function
  cluster.map('nobody', texts);
  // @ts-expect-error -- there is no such option
  cluster.map(later, texts, { concurency: 1 });
}

const notCalled = [
  byFunction,
  byName,
  ofAModule,
  ofAnyModule,
  perWorker,
  fetched,
  notReady,
  mapped,
];

describe('the types of the cluster', () => {
  it('infers arguments and results (checked by the compiler)', () => {
    expect(notCalled).toHaveLength(8);
    expect([ClusterCoordinator, LocalStrategy, RemoteValue].map(({ name }) => name)).toEqual([
      'ClusterCoordinator',
      'LocalStrategy',
      'RemoteValue',
    ]);
  });

  it('the arguments of a function that takes none may be left out', () => {
    expectTypeOf<PerWorkerValues<number>>().toExtend<StandsFor<number>>();
    expectTypeOf<RemoteValue<number>>().toExtend<StandsFor<number>>();
    expectTypeOf<ScheduleArgs<[]>>().toEqualTypeOf<[args?: [], options?: ScheduleOptions]>();
    expectTypeOf<ScheduleArgs<[number]>>().toEqualTypeOf<
      [args: [number | StandsFor<number>], options?: ScheduleOptions]
    >();
    expectTypeOf<ScheduleArgs<[a?: number]>>().toEqualTypeOf<
      [args?: [a?: number | StandsFor<number | undefined>], options?: ScheduleOptions]
    >();
  });

  it('what is no RemoteValue, and holds none, is fetched as it is', () => {
    expectTypeOf<Fetched<number>>().toEqualTypeOf<number>();
    expectTypeOf<Fetched<Plain>>().toEqualTypeOf<Plain>();
    expectTypeOf<Fetched<Account>>().toEqualTypeOf<Account>();
    expectTypeOf<Fetched<readonly [1, RemoteValue<Plain>]>>().toEqualTypeOf<[1, Plain]>();
    expectTypeOf<Fetched<RemoteValue<number> | undefined>>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Fetched<ReadonlyMap<string, RemoteValue<number>>>>().toEqualTypeOf<
      Map<string, number>
    >();
    expectTypeOf<Fetched<ReadonlySet<RemoteValue<number>>>>().toEqualTypeOf<Set<number>>();
  });
});
