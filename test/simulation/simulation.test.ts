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
    return assert.fail((error as { stdout?: string }).stdout || String(error));
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

// Eight seconds on two processors that nobody else uses. `npm run nightly` runs a thousand.
test('20 seeds break no promise', { timeout: 600_000 }, async () => {
  await run('--seeds', '20');
});

test('what seeds have found goes well', { timeout: 300_000 }, async () => {
  const said = await run('--story', 'all');
  assert.match(
    said,
    new RegExp(`^${Object.keys(stories).length} stories, .*: 0 with violations$`, 'm'),
  );
});
