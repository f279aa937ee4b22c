/**
 * node start.mjs STORY COUNT, for callgrind: what a program does before and between its calls.
 *
 *   nothing    the program alone
 *   import     imports allstop
 *   pool       COUNT workers, from the import to their end
 *   call       one worker, and COUNT calls one after the other
 */

const [, , story, count] = process.argv;
const module = new URL('../cluster-tasks.mjs', import.meta.url);
const stories = {
  nothing: () => {},
  import: () => import('../../dist/index.js'),
  async pool(workers, calls = 0) {
    const { createPool } = await import('../../dist/pool/index.js');
    const pool = createPool(module, { workers });
    await pool.ready({ timeoutMs: 600_000 }); // under callgrind, on a busy machine
    for (let index = 0; index < calls; index++) await pool.run('add', [index, 1]);
    await pool.close();
  },
  call: (calls) => stories.pool(1, calls),
};
await stories[story](Number(count));
