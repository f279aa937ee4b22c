/**
 * node start.mjs MARK, for callgrind: what a program does before and between its calls. MARK is the
 * addon of native/mark.c, which ends a part of the output: `import` of allstop, `start` of the first
 * worker with 2 calls, the calls up to the 400th, those up to the 1,600th, and so on.
 */

import { createRequire } from 'node:module';

const { mark } = createRequire(import.meta.url)(process.argv[2]);
const module = new URL('../cluster-tasks.mjs', import.meta.url);
mark('before');
await import('../../dist/index.js');
mark('import');
const { createPool } = await import('../../dist/pool/index.js');

async function start(workers) {
  const pool = createPool(module, { workers });
  await pool.ready({ timeoutMs: 600_000 }); // under callgrind, on a busy machine
  return pool;
}

const pool = await start(1);
let made = 0;
for (const calls of [2, 400, 1_600]) {
  for (; made < calls; made++) await pool.run('add', [made, 1]);
  mark(`${calls} calls`);
}
await pool.close();
mark('end');
await (await start(2)).close();
mark('2 workers');
