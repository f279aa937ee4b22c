/** A program that is killed at random moments, and started again until it is through. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NatsServer } from '../../support/nats-server.ts';

const program = fileURLToPath(new URL('../../fixtures/keyed-program.mjs', import.meta.url));
/** How many items the program may have in flight, which a kill may have run again. */
const IN_FLIGHT = 16;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'allstop-killed-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Numbers from 1 to `most`, the same ones in each run. */
function seeded(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return 1 + Math.floor((state / 2 ** 32) * most);
  };
}

/**
 * Runs the program again and again: each is killed when it has given as many results as it is told,
 * whatever it does at that moment, until one is through.
 */
async function untilThrough(
  args: string[],
  log: string,
  count: number,
  kills: number,
): Promise<{ given: Set<number>; starts: number }> {
  const random = seeded(count);
  const given = new Set<number>();
  for (let starts = 1; ; starts++) {
    const child = spawn(process.execPath, [program, log, String(count), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    // New ones: results of earlier runs come first.
    let left = starts > kills ? Number.POSITIVE_INFINITY : random((2 * count) / kills);
    let isThrough = false;
    createInterface(child.stdout).on('line', (line) => {
      if (line === 'through') isThrough = true;
      else {
        if (!given.has(Number(line))) left -= 1;
        given.add(Number(line));
        if (left === 0) child.kill('SIGKILL');
      }
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect([0, null]).toContain(code);
    if (isThrough) return { given, starts };
  }
}

async function story(args: string[], count: number, kills: number): Promise<void> {
  const log = join(folder, 'log');
  writeFileSync(log, '');
  const { given, starts } = await untilThrough(args, log, count, kills);
  const times = new Map<number, number>();
  for (const line of readFileSync(log, 'utf8').trim().split('\n')) {
    times.set(Number(line), (times.get(Number(line)) ?? 0) + 1);
  }
  expect(given.size).toBe(count);
  expect(times.size).toBe(count);
  const again = [...times.values()].reduce((sum, each) => sum + each - 1, 0);
  expect(starts).toBeGreaterThan(1);
  expect(again).toBeLessThanOrEqual((starts - 1) * IN_FLIGHT);
  process.stderr.write(
    `${count} functions, ${starts - 1} kills: ${again} were run again (at most ${(starts - 1) * IN_FLIGHT})\n`,
  );
}

describe('a program that is killed and started again until it is through', () => {
  test('computes each key once but for what was in flight: FileResults', async () => {
    const directory = join(folder, 'results');
    await story([directory], 200, 3);
    expect(await readdir(join(directory, 'unfinished'))).toEqual([]);
  });

  test('so do two such programs that share a folder', { tags: 'long' }, async () => {
    const directory = join(folder, 'results');
    const log = join(folder, 'log');
    writeFileSync(log, '');
    const both = await Promise.all([1, 2].map(() => untilThrough([directory], log, 200, 3)));
    for (const { given } of both) expect(given.size).toBe(200);
    const lines = readFileSync(log, 'utf8').trim().split('\n');
    expect(new Set(lines).size).toBe(200);
  });

  test('NatsResults', { tags: 'nats' }, async () => {
    const server = await NatsServer.start();
    await story([server.address, 'killed'], 200, 3);
    await server.close();
  });

  test('10,000 functions: FileResults', { tags: 'long', timeout: 600_000 }, async () => {
    await story([join(folder, 'results')], 10_000, 20);
  });

  test('10,000 functions: NatsResults', { tags: ['long', 'nats'], timeout: 600_000 }, async () => {
    const server = await NatsServer.start();
    await story([server.address, 'killed'], 10_000, 20);
    await server.close();
  });
});
