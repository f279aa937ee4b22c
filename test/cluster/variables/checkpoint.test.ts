/** Checkpoint: what a program saved is what it finds when it comes back, whatever happened. */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Checkpoint, ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { warningsDuring } from '../../support/warnings.ts';

const module = new URL('../../fixtures/cluster-variables.mjs', import.meta.url);

/** Numbers below a limit, the same ones in each run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'allstop-checkpoint-'));
});
afterEach(() => rm(directory, { recursive: true }));

const start = (): ClusterCoordinator =>
  new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));

describe('a checkpoint', () => {
  test('gives variables and state back to another run of the program', async () => {
    {
      await using cluster = start();
      const sum = await cluster.variable('sum', 1);
      const weights = await cluster.variable('weights', new Float32Array([1, 2]));
      let epoch = new Map([['epoch', 3n]]);
      const checkpoint = new Checkpoint(cluster, { directory, state: () => epoch });
      const path = await checkpoint.save(7);
      expect(await readdir(directory)).toEqual([path.slice(directory.length + 1)]);
      await sum.assign(2);
      epoch = new Map([['epoch', 4n]]);
      await weights.assignAdd(new Float32Array([1, 1]));
      await checkpoint.save(8);
    }
    await using cluster = start();
    const sum = await cluster.variable('sum', 0);
    const weights = await cluster.variable('weights', new Float32Array(2));
    const loaded: unknown[] = [];
    const load = (state: unknown): void => void loaded.push(state);
    expect(await new Checkpoint(cluster, { directory, load }).restoreLatest()).toBe(8);
    expect(await sum.read()).toBe(2);
    expect([...(await weights.read())]).toEqual([2, 3]);
    expect(loaded).toEqual([new Map([['epoch', 4n]])]);
  });

  test('whose state cannot be loaded changes no variable, also if that is known later', async () => {
    await using cluster = start();
    const sum = await cluster.variable('sum', 1);
    const load = async (): Promise<void> => {
      await sum.read();
      throw new RangeError('not loaded');
    };
    const checkpoint = new Checkpoint(cluster, { directory, state: () => 'state', load });
    await checkpoint.save(1);
    await sum.assign(2);
    await expect(checkpoint.restoreLatest()).rejects.toThrow('not loaded');
    expect(await sum.read()).toBe(2);
  });

  test('stays in its folder when the program changes its working directory', async () => {
    const before = process.cwd();
    const elsewhere = join(directory, 'elsewhere');
    await mkdir(elsewhere);
    await using cluster = start();
    await cluster.variable('sum', 1);
    try {
      process.chdir(directory);
      const folder = join(process.cwd(), 'saved');
      const checkpoint = new Checkpoint(cluster, { directory: 'saved' });
      const paths = [await checkpoint.save(1)];
      process.chdir(elsewhere);
      expect(await checkpoint.restoreLatest()).toBe(1);
      paths.push(await checkpoint.save(2));
      expect(paths.map(dirname)).toEqual([folder, folder]);
      expect((await readdir(folder)).toSorted()).toEqual(paths.map((path) => basename(path)));
      expect(await readdir(elsewhere)).toEqual([]);
    } finally {
      process.chdir(before);
    }
  });

  test('the newest is the last one saved, whatever its step', async () => {
    await using cluster = start();
    const sum = await cluster.variable('sum', 1);
    const checkpoint = new Checkpoint(cluster, { directory, keep: 2 });
    await checkpoint.save(9);
    await sum.assign(2);
    await Promise.all([checkpoint.save(1), checkpoint.save(5), checkpoint.save(0)]);
    expect(await readdir(directory)).toHaveLength(2);
    await sum.assign(0);
    expect(await checkpoint.restoreLatest()).toBe(0);
    expect(await sum.read()).toBe(2);
  });

  test('that lacks a variable made meanwhile is skipped before load runs', async () => {
    await using cluster = start();
    await cluster.variable('sum', 1);
    const loaded: unknown[] = [];
    const load = (state: unknown): void => void loaded.push(state);
    const checkpoint = new Checkpoint(cluster, { directory, state: () => 'state', load });
    await checkpoint.save(1);
    let restored: unknown = 'nothing yet';
    const warnings = await warningsDuring(async () => {
      const restoring = checkpoint.restoreLatest();
      await cluster.variable('weights', new Float32Array(2)); // while the file is read
      restored = await restoring;
    });
    expect(restored).toBeUndefined();
    expect(loaded).toEqual([]);
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('weights')]);
  });

  test('there is none in an empty or missing folder', async () => {
    await using cluster = start();
    const missing = join(directory, 'missing');
    expect(await new Checkpoint(cluster, { directory }).restoreLatest()).toBeUndefined();
    const checkpoint = new Checkpoint(cluster, { directory: missing });
    expect(await checkpoint.restoreLatest()).toBeUndefined();
    await checkpoint.save(1);
    expect(await checkpoint.restoreLatest()).toBe(1);
  });

  test('of another program is skipped with a warning, and nothing changes', async () => {
    {
      await using other = start();
      await other.variable('other', 1);
      await other.variable('sum', new Int32Array(2));
      await new Checkpoint(other, { directory }).save(1);
    }
    await using cluster = start();
    const sum = await cluster.variable('sum', 5);
    const checkpoint = new Checkpoint(cluster, { directory });
    const warnings = await warningsDuring(async () => {
      expect(await checkpoint.restoreLatest()).toBeUndefined();
    });
    expect(warnings).toMatchObject([
      {
        code: 'ALLSTOP_CHECKPOINT',
        message: expect.stringMatching(
          /checkpoint-0000000001-1 is skipped: its variable 'sum' is Int32Array \(2\)/,
        ),
      },
    ]);
    expect(await sum.read()).toBe(5);
  });

  test('an error of load changes no variable', async () => {
    await using cluster = start();
    const sum = await cluster.variable('sum', 5);
    const load = (): void => {
      throw new Error('unknown state');
    };
    const checkpoint = new Checkpoint(cluster, { directory, state: () => 1, load });
    await checkpoint.save(1);
    await sum.assign(6);
    await expect(checkpoint.restoreLatest()).rejects.toThrow('unknown state');
    expect(await sum.read()).toBe(6);
  });

  test('a save that fails leaves the earlier ones', async () => {
    await using cluster = start();
    let state: unknown = 1;
    const checkpoint = new Checkpoint(cluster, { directory, state: () => state });
    await checkpoint.save(1);
    state = { epoch: [(): void => {}] };
    await expect(checkpoint.save(2)).rejects.toMatchObject({
      name: 'DataCloneError',
      message: expect.stringContaining('state.epoch[0]'),
    });
    await expect(checkpoint.save(-1)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    state = 2;
    await checkpoint.save(3);
    expect(await checkpoint.restoreLatest()).toBe(3);
    const file = join(directory, 'file');
    await writeFile(file, '');
    await expect(new Checkpoint(cluster, { directory: file }).save(1)).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
    });
  });

  test('wrong arguments are refused', async () => {
    await using cluster = start();
    const make = (...args: unknown[]): unknown => Reflect.construct(Checkpoint, args);
    const type = expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' });
    expect(() => make({}, { directory })).toThrow(type);
    expect(() => make(cluster)).toThrow(type);
    expect(() => make(cluster, {})).toThrow(type);
    expect(() => make(cluster, { directory, load: 1 })).toThrow(type);
    const range = expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' });
    expect(() => make(cluster, { directory, keep: 0 })).toThrow(range);
    const value = expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' });
    expect(() => make(cluster, { directory, kept: 1 })).toThrow(value);
  });
});

test('after each of 1,000 damages, the newest undamaged save is restored', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  await using cluster = start();
  const sum = await cluster.variable('sum', 0);
  const weights = await cluster.variable('weights', new Float64Array(100));
  let state = 0;
  let loaded: unknown;
  const checkpoint = new Checkpoint(cluster, {
    directory,
    state: () => state,
    load: (value) => (loaded = value),
  });
  const paths: string[] = [];
  for (state = 1; state <= 3; state++) {
    await sum.assign(state);
    await weights.assign(new Float64Array(100).fill(state));
    paths.push(await checkpoint.save(state));
  }
  const whole = await Promise.all(paths.map((path) => readFile(path)));
  const random = seeded(20_261_123);
  type Damage = (bytes: Buffer, at: number) => Buffer;
  const damages: Record<string, Damage> = {
    'a bit flipped': (bytes) => {
      const place = random(bytes.length);
      bytes[place] = (bytes[place] as number) ^ (1 << random(8));
      return bytes;
    },
    'cut off': (bytes) => bytes.subarray(0, random(bytes.length)),
    empty: () => Buffer.alloc(0),
    longer: (bytes) => Buffer.concat([bytes, Buffer.alloc(1 + random(5_000), 7)]),
    // Within the values of `weights`, which are nowhere 0.
    'a page of zeros': (bytes) => bytes.fill(0, bytes.length - 100 - random(400)),
    foreign: () => Buffer.from(Array.from({ length: random(3_000) }, () => random(256))),
    'the bytes of another save': (_bytes, at) => whole[(at + 1 + random(2)) % 3] as Buffer,
    'half of it, half of another save': (bytes, at) => {
      const other = whole[(at + 1 + random(2)) % 3] as Buffer;
      const cut = 1 + random(bytes.length - 1);
      // Where the two differ, so that it is a damage.
      if (bytes.subarray(0, cut).equals(other.subarray(0, cut))) return bytes.subarray(0, cut);
      if (bytes.subarray(cut).equals(other.subarray(cut))) return bytes.subarray(0, cut);
      return Buffer.concat([bytes.subarray(0, cut), other.subarray(cut)]);
    },
  };
  const kinds = Object.keys(damages);
  for (let round = 0; round < 1_000; round++) {
    const kind = kinds[round % kinds.length] as string;
    // The newest one, or the two newest.
    const count = 1 + random(2);
    for (const [at, path] of paths.entries()) {
      const bytes = Buffer.from(whole[at] as Buffer);
      await writeFile(path, at >= 3 - count ? (damages[kind] as Damage)(bytes, at) : bytes);
    }
    // Half of a newer save, which its program's death cut off, and files of other programs.
    const unfinished = join(directory, 'checkpoint-0000000009-9.unfinished');
    await writeFile(unfinished, (whole[2] as Buffer).subarray(0, random(500)));
    await writeFile(join(directory, 'checkpoint-9'), whole[0] as Buffer);
    loaded = undefined;
    const expected = 3 - count;
    const name = `${kind}, round ${round}`;
    const warnings = await warningsDuring(async () => {
      expect(await checkpoint.restoreLatest(), name).toBe(expected);
    });
    expect(warnings.map(({ message }) => message)).toEqual(
      paths
        .slice(expected)
        .toReversed()
        .map((path) => expect.stringContaining(path)),
    );
    expect([loaded, await sum.read()], name).toEqual([expected, expected]);
    expect(new Set(await weights.read()), name).toEqual(new Set([expected]));
  }
});

test('killed in the middle of a save, a program finds its last finished save', {
  tags: 'long',
}, async () => {
  const program = fileURLToPath(new URL('../../fixtures/checkpoint-program.mjs', import.meta.url));
  const random = seeded(7);
  let finished = 0;
  for (let round = 0; round < 12; round++) {
    const child = fork(program, [directory], { stdio: 'inherit' });
    const wanted = 1 + random(8);
    // Several messages may come in one turn of the event loop: a listener for each would miss some.
    const steps: number[] = [];
    let look = (): void => {};
    child.on('message', (step: number) => {
      steps.push(step);
      look();
    });
    await new Promise<void>((resolve) => {
      look = () => steps.length > wanted && resolve();
    });
    child.kill('SIGKILL');
    await once(child, 'close');
    const restored = steps[0] as number;
    // The save after `finished` may have ended, too: the program was killed before it said so.
    expect([finished, finished + 1]).toContain(restored);
    finished = steps.at(-1) as number;
  }
  expect(finished).toBeGreaterThan(12);
});

test('killed at each write of a save, a program finds its last finished save', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const fixture = (name: string): string =>
    fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));
  let finished = 0;
  let renames = 0;
  // The writes of two saves, which remove files, too.
  for (let at = 1; at <= 30; at++) {
    const child = fork(fixture('checkpoint-program.mjs'), [directory], {
      execArgv: ['--import', fixture('kill-at-write.mjs')],
      env: { ...process.env, KILL_AT: String(at) },
    });
    const steps: number[] = [];
    child.on('message', (step: number) => steps.push(step));
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    expect([code, signal], `write ${at}`).toEqual([null, 'SIGKILL']);
    const [restored, ...saved] = steps as [number, ...number[]];
    // The save after `finished` may have got its name before the program could say so.
    expect([finished, finished + 1], `after write ${at - 1}`).toContain(restored);
    if (restored > finished) renames++;
    finished = saved.at(-1) ?? restored;
  }
  expect(renames).toBeGreaterThan(0); // killed between the new name and the end of the save
});
