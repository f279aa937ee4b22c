/** The whole cluster in one process, in virtual time, by seeds (run.mjs). */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { stories } from './stories.mjs';

const run = async (...args: string[]): Promise<string> => {
  const file = fileURLToPath(new URL('run.mjs', import.meta.url));
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file, ...args]);
    return stdout;
  } catch (error) {
    return (error as { stdout?: string }).stdout || assert.fail(String(error));
  }
};

// Of ten seeds run.mjs runs one twice, too, in the gate.
test('a seed gives the same history each time, alone or after others', {
  tags: 'long',
}, async () => {
  const shown = async (...args: string[]): Promise<string> =>
    (await run('--show', ...args)).replace(/\n[^\n]*seeds, [^\n]*\n$/, '');
  const [alone, again] = [await shown('--seed', '9'), await shown('--seed', '9')];
  assert.ok(alone.split('\n').length > 100);
  assert.equal(alone, again);
  const after = await shown('--seed', '7', '--seeds', '3');
  assert.equal(after.slice(-alone.length), alone);
});

/**
 * Of the first twenty seeds the eight that find a planted fault (`--mutants --seeds-only`), and one
 * that run.mjs runs twice. `npm run nightly` runs a thousand.
 */
const SEEDS = [5, 6, 7, 8, 10, 11, 12, 15, 19];
/** In one process: what two would compile is half the work. */
let all: Promise<string> | undefined;
const ran = (): Promise<string> =>
  (all ??= run('--story', 'all', '--seed', SEEDS.join(), '--processes', '1'));

test('seeds break no promise', { timeout: 600_000 }, async () => {
  assert.match(await ran(), new RegExp(`^${SEEDS.length} seeds, .*: 0 with violations$`, 'm'));
});

test('what seeds have found goes well', { timeout: 600_000 }, async () => {
  const { length } = Object.keys(stories);
  assert.match(await ran(), new RegExp(`^${length} stories, .*: 0 with violations$`, 'm'));
});
