// A server's pool, which the stop closes, with exitAfterStop: one function runs since before
// the stop, one has begun since.
import { Coordinator } from 'allstop';
import { createPool } from 'allstop/pool';
import { say } from './say.mjs';

const module = new URL('./cluster-tasks.mjs', import.meta.url);
const coord = new Coordinator();
const pool = createPool(module, {
  workers: 2,
  closeOnStop: coord,
  drainMs: 100,
  cancelGraceMs: 60_000,
});
const block = (args) =>
  new Promise((resolve) => {
    void pool.run('announceAndBlock', args, { onProgress: resolve }).catch(() => {});
  });
await pool.ready();
await block([]);
say('explained', { text: String(coord.explain()) });
coord.exitAfterStop(2_000);
coord.requestStop();
await block([]);
setInterval(() => {}, 60_000);
