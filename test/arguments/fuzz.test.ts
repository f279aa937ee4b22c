// Random arguments to random methods, in a process that must survive them. To replay a failure:
// node test/fixtures/fuzz-arguments.mjs SEED RUNS

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { runs, seed } from '../support/seed.ts';

const script = fileURLToPath(new URL('../fixtures/fuzz-arguments.mjs', import.meta.url));

const name = 'random arguments break nothing, with seed %d';
it.each([seed])(name, { tags: 'property' }, survive);
it.each([seed + 1, seed + 2])(name, { tags: ['property', 'long'] }, survive);

async function survive(first: number): Promise<void> {
  const count = runs(200);
  const run = promisify(execFile)(process.execPath, [script, `${first}`, `${count}`]);
  const { stdout } = await run.catch((error: unknown) => {
    // A failure shows the signal of a crash, or the calls that led to it.
    throw new Error(`seed ${first}, ${count} runs`, { cause: error });
  });
  const { calls, refused } = JSON.parse(stdout) as { calls: number; refused: number };
  expect(calls).toBeGreaterThan(5 * count);
  expect(refused).toBeGreaterThan(1.5 * count);
}
