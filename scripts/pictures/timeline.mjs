// The program of docs/timeline.png: a pool whose calls end in the drain, hooks one after the other, an
// error, and a worker that is left behind. Writes its timeline to the file that argv names.
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from 'allstop/pool';

const module = new URL(
  'data:text/javascript,export const resize = (ms) => new Promise((end) => setTimeout(end, ms))',
);
const pool = createPool(module, { workers: 2 });
const coord = pool.coordinator;
await pool.ready();
const busy = 'const end = Date.now() + 900; while (Date.now() < end);';
coord.spawn(busy, { eval: true, name: 'indexer' });
void coord.start(() => sleep(3_600_000, undefined, { signal: coord.signal }), { name: 'download' });
coord.onStop(() => sleep(90), { name: 'close database' });
coord.onStop(() => sleep(160), { name: 'close server' });
const calls = Array.from({ length: 14 }, (_, n) => pool.run('resize', [40 + 7 * n]));
void coord.start(
  async () => {
    await sleep(430);
    throw new RangeError('page 17 is missing');
  },
  { name: 'crawler' },
);
await Promise.allSettled(calls);
await coord.join([], { stopGracePeriodMs: 300 }).catch(() => {});
writeFileSync(process.argv[2], JSON.stringify(coord.timeline()));
process.exit();
