/** Memory that a pool keeps for the arguments of further calls. */

import { createPool } from 'allstop/pool';
import { expect, it } from 'vitest';
import { collectUntil } from '../../support/collect.ts';

const MB = 2 ** 20;
const module = new URL('data:text/javascript,export const size = (bytes) => bytes.length');
const megabytes = (): number => process.memoryUsage().arrayBuffers / MB;

it('goes with the pool', async () => {
  const before = megabytes();
  const pool = createPool<{ size(bytes: Uint8Array): number }>(module, { workers: 2 });
  const calls = Array.from({ length: 80 }, () => pool.run('size', [new Uint8Array(MB)]));
  expect(await Promise.all(calls)).toEqual(calls.map(() => MB));
  expect(megabytes()).toBeGreaterThan(before + 32);
  await pool.close();
  await collectUntil(() => megabytes() < before + 8);
});
