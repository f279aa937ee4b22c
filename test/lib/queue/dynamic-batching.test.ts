/** Runs the recipe of docs/queues.md, as a reader would. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

it('the recipe for dynamic batching makes batches of 32 at most, and answers each request', () => {
  const page = readFileSync(`${root}/docs/queues.md`, 'utf8');
  const recipe = /### Dynamic batching[\s\S]*?^```js\n([\s\S]*?)^```$/m.exec(page)?.[1];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', recipe ?? 'throw new Error("no recipe")'],
    { cwd: root, encoding: 'utf8' },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const sizes = [...stdout.matchAll(/^a batch of (\d+)$/gm)].map(([, size]) => Number(size));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(32);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(40);
  expect(stdout).toContain('the last of 40 answers: 1521');
});
