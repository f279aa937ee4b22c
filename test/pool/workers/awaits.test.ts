/** What an `await` in a worker's function costs: the same as without the package. */

import { createPool } from 'allstop/pool';
import { expect, it } from 'vitest';

const source = `import { executionAsyncId } from 'node:async_hooks';
export async function idAfterAwait() {
  await undefined;
  return executionAsyncId();
}`;
const module = new URL(`data:text/javascript,${encodeURIComponent(source)}`);

// Up to Node 22 a thread in which an AsyncLocalStorage was used calls hooks for each promise: they
// give it an id, and make each `await` three to five times slower.
it('a worker calls no promise hooks while its module cannot ask for its call', async () => {
  const pool = createPool(module, { workers: 1 });
  try {
    expect(await pool.run('idAfterAwait', [])).toBe(0);
  } finally {
    await pool.close();
  }
});
