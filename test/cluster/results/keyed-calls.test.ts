/** Calls with a key: what has ended is not computed again. FileResults. */

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CancelledError,
  ClusterCoordinator,
  type ClusterOptions,
  FileResults,
  LocalStrategy,
  type LocalStrategyOptions,
} from 'allstop/cluster';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { Program } from '../../support/program.ts';
import { warningsDuring } from '../../support/warnings.ts';

const module = new URL('../../fixtures/keyed-tasks.mjs', import.meta.url);

let folder: string;
let log: string;
let gate: string;
let directory: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'allstop-results-'));
  log = join(folder, 'log');
  gate = join(folder, 'gate');
  directory = join(folder, 'results');
  writeFileSync(log, '');
});
afterEach(() => rm(folder, { recursive: true }));

const start = (
  options: ClusterOptions = {},
  strategy: Partial<LocalStrategyOptions> = {},
): ClusterCoordinator =>
  new ClusterCoordinator(new LocalStrategy({ module, workers: 1, ...strategy }), {
    results: new FileResults(directory),
    ...options,
  });

/** What the functions have appended. */
const runs = (): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);
const open = (): void => appendFileSync(gate, 'open');

/** The files of results. */
async function files(): Promise<string[]> {
  const all = await readdir(directory, { recursive: true });
  return all.filter((name) => /[0-9a-f]{64}$/.test(name)).map((name) => join(directory, name));
}

/** Resolves when `count` executions have begun. */
const begun = (count: number): Promise<void> => eventually(() => runs().length >= count);

async function collect<T>(results: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const result of results) all.push(result);
  return all;
}

describe('a call with a key', () => {
  test('is run once, in this run of the program and the next', async () => {
    {
      await using cluster = start();
      expect(await cluster.run('note', [log, 'a', { of: 'a' }], { key: 'a' })).toEqual({ of: 'a' });
      expect(await files()).toHaveLength(1); // it was stored before the promise resolved
      expect(await cluster.run('note', [log, 'a', { of: 'a' }], { key: 'a' })).toEqual({ of: 'a' });
    }
    await using cluster = start();
    expect(await cluster.run('note', [log, 'a', { of: 'a' }], { key: 'a' })).toEqual({ of: 'a' });
    expect(runs()).toEqual(['a']);
    expect(cluster.stats()).toMatchObject({ completed: 0, functions: {}, held: 0 });
  });

  test('belongs to its function, whatever characters it has', async () => {
    await using cluster = start();
    const keys = ['', '/../x', 'x'.repeat(10_000), 'ä\0\n', '\ud800', '\udbff', 'A', 'a'];
    for (const key of keys) await cluster.run('note', [log, 'n', key], { key });
    await cluster.run('first', [log, 'other'], { key: 'a' });
    for (const key of keys) {
      expect(await cluster.run('note', [log, 'n', key], { key })).toBe(key);
    }
    expect(await cluster.run('first', [log, 'other'], { key: 'a' })).toBe('other');
    expect(runs()).toHaveLength(keys.length);
  });

  test('gives each value as it was, and each caller a copy of its own', async () => {
    await using cluster = start();
    const call = (kind: string): Promise<unknown> =>
      cluster.run('make', [log, kind], { key: kind });
    const odd = await call('odd');
    expect(odd).toEqual([
      undefined,
      -0,
      Number.NaN,
      1n,
      new Date(5),
      new Map([[new Set([1]), /a/g]]),
    ]);
    expect(await call('odd')).toEqual(odd);
    const large = 3 * 1024 * 1024;
    const [one, other] = await Promise.all([call(String(large)), call(String(large))]);
    (one as Uint8Array)[0] = 1;
    expect((other as Uint8Array)[0]).toBe(7);
    const again = (await call(String(large))) as Uint8Array;
    expect(Buffer.compare(again, new Uint8Array(large).fill(7))).toBe(0);
    expect(runs()).toEqual(['odd', String(large)]);
  });

  test('whose result cannot be stored fails with a DataCloneError', async () => {
    await using cluster = start();
    await expect(cluster.run('make', [log, 'shared'], { key: 'x' })).rejects.toMatchObject({
      name: 'DataCloneError',
      message: expect.stringContaining("The result of 'make' cannot be stored"),
    });
  });

  test('does not end because another caller gave up in line', async () => {
    await using cluster = start({ maxQueued: 1 }, { workers: 1 });
    const full = ['a', 'b'].map((line) => cluster.run('noteAtGate', [log, line, gate]));
    await begun(1);
    const abort = new AbortController();
    const call = (options = {}): Promise<unknown> =>
      cluster.run('note', [log, 'c'], { key: 'c', ...options });
    const first = expect(call({ signal: abort.signal })).rejects.toBe('enough');
    abort.abort('enough');
    const second = call();
    open();
    await first;
    expect(await second).toBe('c');
    await Promise.all(full);
  });

  test('that ended with an error is run again', async () => {
    await using cluster = start();
    const call = (): Promise<unknown> => cluster.run('failWithout', [log, gate], { key: 'x' });
    await expect(call()).rejects.toThrow(new RangeError('not yet'));
    await expect(call()).rejects.toThrow(new RangeError('not yet'));
    open();
    expect(await call()).toBe('done');
    expect(await call()).toBe('done');
    expect(runs()).toHaveLength(3);
  });

  test('with other arguments is refused, when the first is in flight and when it is stored', async () => {
    await using cluster = start();
    const refusal = { name: 'InvalidArgumentError', message: expect.stringContaining('"job"') };
    const first = cluster.run('noteAtGate', [log, 'a', gate], { key: 'job' });
    await begun(1);
    await expect(cluster.run('noteAtGate', [log, 'b', gate], { key: 'job' })).rejects.toMatchObject(
      refusal,
    );
    open();
    expect(await first).toBe('a');
    await expect(cluster.run('noteAtGate', [log, 'b', gate], { key: 'job' })).rejects.toMatchObject(
      refusal,
    );
    expect(runs()).toEqual(['a']);
    expect(cluster.stats()).toMatchObject({ completed: 1, failed: 0 });
  });

  test('needs a store, an option of run, and text', async () => {
    await using cluster = start({ results: undefined });
    await expect(cluster.run('note', [log, 'a'], { key: 'a' })).rejects.toMatchObject({
      name: 'FailedPreconditionError',
      code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
    });
    await expect(collect(cluster.map('noteItem', [{}], { key: () => 'a' }))).rejects.toMatchObject({
      name: 'FailedPreconditionError',
    });
    await using keeps = start();
    // @ts-expect-error a number
    await expect(keeps.run('note', [log, 'a'], { key: 5 })).rejects.toThrow(/options.key/);
    // @ts-expect-error `schedule` has none
    await expect(keeps.schedule('note', [log, 'a'], { key: 'a' })).rejects.toThrow(/no option/);
    // @ts-expect-error not a function
    expect(() => keeps.map('noteItem', [{}], { key: 'a' })).toThrow(/options.key/);
    const options = { key: (() => 5) as never };
    await expect(collect(keeps.map('noteItem', [{}], options))).rejects.toThrow(TypeError);
    // @ts-expect-error not a store
    expect(() => start({ results: directory })).toThrow(/options.results/);
    expect(() => new FileResults('')).toThrow(/empty/);
    // @ts-expect-error a directory is missing
    expect(() => new FileResults()).toThrow(TypeError);
    expect(runs()).toEqual([]);
  });
});

describe('two calls of one key at once', () => {
  test('share one run, its progress and its error', async () => {
    await using cluster = start();
    const seen: unknown[] = [];
    const one = cluster.run('report', [log, gate], {
      key: 'x',
      onProgress: (value) => seen.push(1, value),
    });
    const other = cluster.run('report', [log, gate], {
      key: 'x',
      onProgress: (value) => seen.push(2, value),
    });
    await begun(1);
    open();
    expect(await Promise.all([one, other])).toEqual(['reported', 'reported']);
    expect(seen).toEqual([1, 'begun', 2, 'begun']);
    expect(runs()).toEqual(['called']);
    const missing = join(folder, 'missing');
    const both = [1, 2].map(() => cluster.run('failWithout', [log, missing], { key: 'y' }));
    const outcomes = await Promise.allSettled(both);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(runs()).toHaveLength(2);
  });

  test('each are cancelled by their own onProgress, also by its promise', async () => {
    await using cluster = start();
    const full = new Error('no room');
    const fails = cluster.run('report', [log, gate], {
      key: 'x',
      onProgress: () => Promise.reject(full),
    });
    const other = cluster.run('report', [log, gate], { key: 'x', onProgress: () => {} });
    await expect(fails).rejects.toBe(full);
    open();
    expect(await other).toBe('reported');
  });

  test('each have their own signal and deadline: the last to give up ends the run', async () => {
    await using cluster = start();
    const abort = new AbortController();
    const args = [log, 'a', gate];
    const aborted = cluster.run('noteAtGate', args, { key: 'a', signal: abort.signal });
    const late = cluster.run('noteAtGate', args, { key: 'a', timeoutMs: 300 }).catch((e) => e);
    const patient = cluster.run('noteAtGate', args, { key: 'a' });
    await begun(1);
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await late).toMatchObject({ name: 'DeadlineExceededError' });
    expect(cluster.stats()).toMatchObject({ inFlight: 1 });
    open();
    expect(await patient).toBe('a');
    expect(runs()).toEqual(['a']);

    const second = new AbortController();
    const other = join(folder, 'other gate');
    const alone = cluster.run('noteAtGate', [log, 'b', other], { key: 'b', signal: second.signal });
    const alsoAlone = cluster.run('noteAtGate', [log, 'b', other], {
      key: 'b',
      signal: second.signal,
    });
    await begun(2);
    second.abort(reason);
    await expect(alone).rejects.toBe(reason);
    await expect(alsoAlone).rejects.toBe(reason);
    await cluster.join(); // the function has obeyed its signal
    expect(cluster.stats()).toMatchObject({ inFlight: 0, cancelled: 1 });
  });

  test('also where the second comes before the store was read, and by name and function', async () => {
    await using cluster = start();
    const { note } = (await import(module.href)) as { note: (...args: string[]) => string };
    const calls = [
      cluster.run('note', [log, 'a'], { key: 'a' }),
      cluster.run(note, [log, 'a'], { key: 'a' }),
      cluster.run('note', [log, 'a'], { key: 'a' }),
    ];
    expect(await Promise.all(calls)).toEqual(['a', 'a', 'a']);
    expect(runs()).toEqual(['a']);
  });
});

describe('the arguments of a call with a key', () => {
  /** Of several tests, which have keys of their own. */
  let sharing: ClusterCoordinator;
  let stored: string;
  beforeAll(async () => {
    stored = await mkdtemp(join(tmpdir(), 'allstop-results-'));
    directory = stored;
    sharing = start();
  });
  afterAll(async () => {
    await sharing.close();
    await rm(stored, { recursive: true });
  });

  const graph = (): object => {
    const node: Record<string, unknown> = { name: 'root' };
    node['child'] = { parent: node, list: [node] };
    return node;
  };
  const shared = { x: 1 };
  const holes = (length: number): unknown[] => Object.assign([], { length });

  test.each<[string, () => unknown, () => unknown]>([
    ['the order of keys', () => ({ a: 1, b: { c: 2, d: 3 } }), () => ({ b: { d: 3, c: 2 }, a: 1 })],
    [
      'one object twice',
      () => ({ from: shared, to: shared }),
      () => ({ from: { x: 1 }, to: { x: 1 } }),
    ],
    ['values that contain themselves', graph, graph],
    [
      'bytes of another buffer',
      () => new Uint8Array([1, 2]),
      () => new Uint8Array([0, 1, 2]).subarray(1),
    ],
    ['odd numbers', () => [Number.NaN, -0, 2n ** 70n], () => [Number.NaN, -0, 2n ** 70n]],
  ])('are the same whatever %s', async (key, one, other) => {
    await sharing.run('note', [log, 'a', one()], { key });
    await sharing.run('note', [log, 'a', other()], { key });
    expect(runs()).toEqual(['a']);
  });

  test('are told apart', async () => {
    await using cluster = start();
    const values: unknown[] = [
      undefined,
      null,
      0,
      -0,
      Number.NaN,
      1,
      '1',
      1n,
      true,
      'true',
      '',
      [],
      {},
      [undefined],
      holes(1),
      holes(2),
      [[]],
      [null],
      { a: undefined },
      { a: null },
      new Map(),
      new Set(),
      new Map([[1, 2]]),
      new Map([[2, 1]]),
      new Map([
        [1, 2],
        [3, 4],
      ]),
      new Map([
        [3, 4],
        [1, 2],
      ]),
      new Set([1, 2]),
      new Set([2, 1]),
      new Set(['1', '2']),
      new Date(0),
      new Date(Number.NaN),
      new Date(0).toJSON(),
      /a/,
      /a/g,
      new Uint8Array(2),
      new Int8Array(2),
      new Uint16Array(1),
      new ArrayBuffer(2),
      new DataView(new ArrayBuffer(2)),
      new Float64Array([0]),
      new Float64Array([-0]),
      new Error('a'),
      new TypeError('a'),
      new Error('b'),
      Object(1),
      [1, 2],
      [[1], 2],
      ['1,2'],
      { a: 1, b: 2 },
      { a: { b: 2 } },
      graph(),
      [graph()],
      '#0',
      '@0',
      ['#0'],
      [
        [1, 2],
        [1, 2],
      ],
      Object.assign([1, 2], { x: 1 }),
      '\ud800',
      '\ufffd',
      { '': 1 },
      Object.assign(holes(3), { 0: 1, 2: 2 }),
    ];
    const refused = (value: unknown): Promise<unknown> =>
      cluster.run('first', [log, value], { key: 'one' });
    expect(await refused(values[0])).toBe(values[0]);
    for (const value of values.slice(1)) {
      await expect(refused(value)).rejects.toMatchObject({ name: 'InvalidArgumentError' });
    }
    await rm(directory, { recursive: true });
    for (const [at, value] of values.entries()) {
      await cluster.run('first', [log, value], { key: String(at) });
    }
    const records = await Promise.all((await files()).map((file) => readFile(file, 'latin1')));
    const hashes = records.map((record) => /"arguments":"([0-9a-f]+)"/.exec(record)?.[1]);
    expect(new Set(hashes).size).toBe(values.length);
  });

  test('are those of the moment of the call', async () => {
    const value = { a: 1 };
    const call = sharing.run('note', [log, 'a', value], { key: 'moment' });
    value.a = 2;
    expect(await call).toEqual({ a: 1 });
    expect(await sharing.run('note', [log, 'a', { a: 1 }], { key: 'moment' })).toEqual({ a: 1 });
    expect(runs()).toEqual(['a']);
  });

  test('may be RemoteValues that come when the cluster is closing', async () => {
    const cluster = start();
    const value = await cluster.schedule<any>('noteAtGate', [log, 'a', gate]);
    const kept = cluster.run('first', [log, value], { key: 'a' });
    const closing = cluster.close({ drainMs: 60_000 });
    const late = cluster.run('first', [log, value], { key: 'b' });
    const refused = expect(late).rejects.toMatchObject({ name: 'FailedPreconditionError' });
    open();
    expect(await kept).toBe('a');
    await refused;
    await closing;
  });

  test('may be RemoteValues of another cluster, which do not hold up the end of this one', async () => {
    await using other = start();
    const cluster = start();
    const value = await other.schedule('noteAtGate', [log, 'other', gate]);
    const call = cluster.run('note', [log, value as any], { key: 'x' });
    const ended = expect(call).rejects.toThrow(CancelledError);
    await cluster.close();
    await ended;
  });

  test('may be RemoteValues, which are waited for and compared by value', async () => {
    await using cluster = start();
    const remote = await cluster.schedule('noteAtGate', [log, 'before', gate]);
    const call = cluster.run('note', [log, 'a', remote as never], { key: 'a' });
    await begun(1);
    open();
    expect(await call).toBe('before');
    expect(await cluster.run('note', [log, 'a', 'before'], { key: 'a' })).toBe('before');
    expect(runs()).toEqual(['before', 'a']);
    const failed = await cluster.schedule('failWithout', [log, join(folder, 'missing')]);
    const error = await cluster
      .run('note', [log, 'b', failed as never], { key: 'b' })
      .catch((e) => e);
    expect(error).toMatchObject({ message: 'not yet' });
    await expect(cluster.join()).rejects.toThrow('not yet');
  });

  test('that are not known are refused', async () => {
    const variable = await sharing.variable('v', 0);
    const perWorker = sharing.createPerWorkerDataset('first', []).iterator();
    const refused = [
      variable,
      [variable],
      new SharedArrayBuffer(8),
      new Int32Array(new SharedArrayBuffer(8)),
      perWorker,
    ];
    for (const value of refused) {
      await expect(sharing.run('first', [log, value], { key: 'odd' })).rejects.toMatchObject({
        name: 'InvalidArgumentError',
      });
    }
    await expect(sharing.run('first', [log, () => {}], { key: 'odd' })).rejects.toMatchObject({
      name: 'DataCloneError',
    });
  });
});

describe('map with keys', () => {
  const items = (count: number): { log: string; line: string }[] =>
    Array.from({ length: count }, (_, at) => ({ log, line: `item ${at}` }));
  const key = ({ line }: { line: string }): string => line;

  test('runs what is not stored, and keeps the order', async () => {
    const expected = items(300).map(({ line }) => `result of ${line}`);
    {
      await using cluster = start();
      const half = items(300).filter((_, at) => at % 3 === 0);
      await collect(cluster.map('noteItem', half, { key }));
    }
    await using cluster = start();
    expect(await collect(cluster.map('noteItem', items(300), { key }))).toEqual(expected);
    expect(new Set(runs()).size).toBe(300);
    expect(runs()).toHaveLength(300);
    expect(cluster.stats()).toMatchObject({ completed: 200 });
    expect(await collect(cluster.map('noteItem', items(300), { key }))).toEqual(expected);
    expect(runs()).toHaveLength(300);
  });

  test('numbers the items, and shares what two of them have', async () => {
    await using cluster = start();
    const given: number[] = [];
    const [first] = items(1);
    const twice = [first, first, first];
    const keys = (_item: unknown, index: number): string => {
      given.push(index);
      return 'the same';
    };
    const results = await collect(cluster.map('noteItem', twice, { key: keys }));
    expect(results).toEqual(['result of item 0', 'result of item 0', 'result of item 0']);
    expect(given).toEqual([0, 1, 2]);
    expect(runs()).toEqual(['item 0']);
    const settled = await collect(
      cluster.map('noteItem', items(2), { key: () => 'the same', onError: 'settle' }),
    );
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  test('never goes further ahead of its consumer than it may', async () => {
    await using cluster = start();
    await collect(cluster.map('noteItem', items(50), { key }));
    let pulled = 0;
    function* source(): Generator<{ log: string; line: string }> {
      for (const item of items(50)) {
        pulled += 1;
        yield item;
      }
    }
    let taken = 0;
    for await (const result of cluster.map('noteItem', source(), { key, concurrency: 4 })) {
      expect(result).toBe(`result of item ${taken}`);
      taken += 1;
      expect(pulled).toBeLessThanOrEqual(taken + 4);
    }
    expect(taken).toBe(50);
  });

  test('ends what it has begun when it is left', async () => {
    await using cluster = start({}, { workers: 2 });
    const other = cluster.run('noteAtGate', [log, 'x', gate], { key: 'x' });
    await begun(1);
    const mapped = cluster.map('noteItem', items(20), { key });
    await mapped.next();
    await mapped.return?.();
    expect(cluster.stats().inFlight).toBeGreaterThanOrEqual(1); // the other call goes on
    open();
    expect(await other).toBe('x');
  });
});

describe('the store of FileResults', () => {
  const call = (cluster: ClusterCoordinator): Promise<unknown> =>
    cluster.run('note', [log, 'a'], { key: 'a' });

  test.each<[string, (file: string) => Promise<void>]>([
    ['truncated', (file) => truncate(file, 40)],
    ['empty', (file) => truncate(file, 0)],
    ['foreign', (file) => writeFile(file, 'something else that is long enough to be a result')],
    [
      'damaged',
      async (file) => {
        const bytes = await readFile(file);
        bytes[bytes.length - 35] = (bytes.at(-35) as number) ^ 1;
        await writeFile(file, bytes);
      },
    ],
  ])('has a result run again that is %s, with one warning', async (_name, damage) => {
    {
      await using cluster = start();
      await call(cluster);
      await cluster.run('note', [log, 'b'], { key: 'b' });
    }
    const both = await files();
    for (const file of both) await damage(file);
    const warnings = await warningsDuring(async () => {
      await using cluster = start();
      expect(await call(cluster)).toBe('a');
      expect(await cluster.run('note', [log, 'b'], { key: 'b' })).toBe('b');
    });
    expect(runs()).toEqual(['a', 'b', 'a', 'b']);
    expect(warnings).toMatchObject([{ name: 'ResultsWarning', code: 'ALLSTOP_RESULTS' }]);
    expect(both.some((file) => warnings[0]?.message.includes(file))).toBe(true);
    await using cluster = start();
    await call(cluster);
    expect(runs()).toHaveLength(4);
  });

  test('does not take the result of one key for that of another', async () => {
    await using cluster = start();
    await call(cluster);
    const [a] = await files();
    await cluster.run('note', [log, 'b'], { key: 'b' });
    const b = (await files()).find((file) => file !== a) as string;
    await writeFile(b, await readFile(a as string));
    const warnings = await warningsDuring(async () => {
      expect(await cluster.run('note', [log, 'b'], { key: 'b' })).toBe('b');
    });
    expect(warnings).toHaveLength(1);
    expect(runs()).toEqual(['a', 'b', 'b']);
  });

  test('has a result run again that another definition of the module has made', async () => {
    for (const definition of ['one', 'one', 'two', undefined]) {
      await using cluster = start({}, { definition });
      expect(await call(cluster)).toBe('a');
    }
    expect(runs()).toHaveLength(3);
    await using cluster = start({}, { definition: 'three' });
    // Other arguments are no mistake then.
    expect(await cluster.run('note', [log, 'other'], { key: 'a' })).toBe('other');
  });

  test('clears away what killed programs were writing, and nothing of others', async () => {
    {
      await using cluster = start();
      await call(cluster);
    }
    const unfinished = join(directory, 'unfinished');
    expect(await readdir(unfinished)).toEqual([]);
    const { createHash, randomUUID } = await import('node:crypto');
    const { hostname } = await import('node:os');
    const { spawnSync } = await import('node:child_process');
    const { pid: dead } = spawnSync(process.execPath, ['-e', '']);
    const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 12);
    const names = {
      ofTheDead: `${host}-${dead}-${randomUUID()}`,
      ofAnEarlierProcessWithThisPid: `${host}-${process.pid}-${randomUUID()}`,
      ofThisProcess: `${host}-${process.pid}-${randomUUID()}`,
      ofTheLiving: `${host}-${process.ppid}-${randomUUID()}`,
      ofAnotherHost: `${'0'.repeat(12)}-${dead}-${randomUUID()}`,
      old: `${'0'.repeat(12)}-${process.ppid}-${randomUUID()}`,
      ofTheUser: 'notes.txt',
    };
    for (const name of Object.values(names)) await writeFile(join(unfinished, name), 'x');
    const before = Date.now() / 1_000 - process.uptime() - 5;
    await utimes(join(unfinished, names.ofAnEarlierProcessWithThisPid), before, before);
    const old = Date.now() / 1_000 - 2 * 3_600;
    await utimes(join(unfinished, names.old), old, old);
    await using cluster = start();
    await call(cluster);
    expect((await readdir(unfinished)).toSorted()).toEqual(
      [names.ofThisProcess, names.ofTheLiving, names.ofAnotherHost, names.ofTheUser].toSorted(),
    );
  });

  test('that cannot be written fails the call, and names the file and the cause', async () => {
    await writeFile(directory, 'a file, not a folder');
    await using cluster = start();
    await expect(call(cluster)).rejects.toMatchObject({
      name: 'UnavailableError',
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringMatching(new RegExp(`${directory}.*(EEXIST|ENOTDIR)`)),
      cause: expect.any(Error),
    });
    expect(runs()).toEqual([]); // it was not run for nothing
    expect(cluster.stats()).toMatchObject({ failed: 0, completed: 0 });
    await rm(directory);
    expect(await call(cluster)).toBe('a'); // the store is tried again
  });

  test.runIf(process.platform === 'linux')('below /proc fails the call, too', async () => {
    const { code, stdout } = await new Program('test/fixtures/folder-in-proc.mjs').ended;
    const [ofResults, ofCheckpoint, closed] = stdout.split('\n');
    expect(ofResults).toMatch(/^ERR_ALLSTOP_UNAVAILABLE ENOENT .*\/proc\/nope/);
    expect(ofCheckpoint).toMatch(/^ERR_ALLSTOP_UNAVAILABLE ENOENT .*\/proc\/nope\/deep/);
    expect([closed, code]).toEqual(['closed', 0]);
  });

  test('that can no longer be written fails the call after the function', async () => {
    await using cluster = start();
    await call(cluster);
    const [file] = await files();
    const second = cluster.run('noteAtGate', [log, 'b', gate], { key: 'b' });
    await begun(2);
    await rm(directory, { recursive: true });
    await writeFile(directory, '');
    open();
    await expect(second).rejects.toMatchObject({
      name: 'UnavailableError',
      message: expect.stringContaining(`could not be written to the file ${directory}`),
    });
    await rm(directory);
    expect(await call(cluster)).toBe('a');
    expect(existsSync(file as string)).toBe(true);
  });

  test('that is deleted while it is open is made again', async () => {
    await using cluster = start();
    await call(cluster);
    await rm(directory, { recursive: true });
    expect(await call(cluster)).toBe('a');
    expect(await files()).toHaveLength(1);
    expect(runs()).toHaveLength(2);
  });

  test('may be that of two clusters', async () => {
    const results = new FileResults(directory);
    await using one = start({ results });
    {
      await using other = start({ results });
      await call(other);
    }
    expect(await call(one)).toBe('a');
    expect(runs()).toEqual(['a']);
  });
});

describe('the cluster waits for results that are being stored', () => {
  test('in join, done and close with drainMs', async () => {
    await using cluster = start();
    const call = cluster.run('note', [log, 'a'], { key: 'a' });
    await cluster.join();
    expect(await files()).toHaveLength(1);
    expect(await cluster.done()).toBe(true);
    await call;
    const last = cluster.run('note', [log, 'b'], { key: 'b' });
    await cluster.close({ drainMs: 30_000 });
    expect(await last).toBe('b');
    expect(await files()).toHaveLength(2);
  });

  test('and settles each call when it is closed or stopped', async () => {
    const cluster = start();
    const running = cluster.run('noteAtGate', [log, 'b', gate], { key: 'b' });
    const shared = cluster.run('noteAtGate', [log, 'b', gate], { key: 'b' });
    await begun(1);
    const reading = cluster.run('note', [log, 'a'], { key: 'a' });
    const settled = Promise.allSettled([reading, running, shared]);
    await cluster.close();
    for (const outcome of await settled) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { name: expect.stringMatching(/CancelledError|AbortError/) }, // the function obeyed
      });
    }
    await expect(cluster.run('note', [log, 'a'], { key: 'a' })).rejects.toMatchObject({
      name: 'FailedPreconditionError',
    });
  });
});

test.skipIf(process.getuid?.() === 0)(
  'a folder that may not be written is found out before the function runs',
  async () => {
    await mkdir(directory);
    await chmod(directory, 0o500);
    await using cluster = start();
    await expect(cluster.run('note', [log, 'a'], { key: 'a' })).rejects.toMatchObject({
      name: 'UnavailableError',
    });
    expect(runs()).toEqual([]);
  },
);
