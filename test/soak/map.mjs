/**
 * Many items through `cluster.map` while functions kill their workers, and workers are killed at
 * random: each item has to come out exactly once, in order, and only the poisonous ones fail.
 *
 *   node test/soak/map.mjs                                        a million items, on threads
 *   node test/soak/map.mjs --items N --isolation process --seed N
 */

import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { ClusterCoordinator, LocalStrategy, UnavailableError } from '../../dist/cluster/index.js';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '1000000' },
    isolation: { type: 'string', default: 'thread' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const ITEMS = Number(values.items);
const { isolation } = values;
/** One item in this many kills its worker at each attempt. */
const POISON_EVERY = 1_000;
const isPoison = (item) => item % POISON_EVERY === POISON_EVERY - 1;
/** A worker is killed after about this many results, at random. */
const KILL_EVERY = 2_000;

let state = Number(values.seed);
/** A number from 0 to 1 (mulberry32). */
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

function* numbers() {
  for (let item = 0; item < ITEMS; item += 1) yield item;
}

const module = new URL('map-tasks.mjs', import.meta.url);
const strategy = new LocalStrategy({ module, workers: 2, isolation });
const cluster = new ClusterCoordinator(strategy);
let kills = 0;

/** A process is killed from outside; a thread is told to end itself while it does other things. */
function killOne() {
  kills += 1;
  const { workers } = cluster;
  const { pid } = workers[Math.floor(random() * workers.length)];
  if (isolation === 'process') {
    if (Number.isInteger(pid) && pid !== process.pid) process.kill(pid, 'SIGKILL');
  } else cluster.run('endSoon', [], { retries: 0 }).catch(() => {}); // if it is hit itself
}

await cluster.ready();
const began = performance.now();
const seen = { fulfilled: 0, poisoned: 0 };
let next = 0;
let peak = 0;
for await (const result of cluster.map('work', numbers(), { onError: 'settle' })) {
  const where = `item ${next}, seed ${values.seed}`;
  assert.equal(result.item, next, where);
  if (isPoison(next)) {
    assert.equal(result.status, 'rejected', where);
    assert.ok(result.reason instanceof UnavailableError, where);
    assert.match(result.reason.message, /^'work' lost its worker 4 times in \d+ attempts/, where);
    seen.poisoned += 1;
  } else {
    assert.equal(result.status, 'fulfilled', `${where}: ${result.reason}`);
    assert.equal(result.value, next * 2, where);
    seen.fulfilled += 1;
  }
  if (random() * KILL_EVERY < 1) killOne();
  if (next % 10_000 === 0) peak = Math.max(peak, process.memoryUsage().heapUsed);
  next += 1;
}
assert.equal(next, ITEMS);
const { engine, retried } = cluster.stats();
await cluster.close();
const seconds = ((performance.now() - began) / 1_000).toFixed(1);
const heapMb = (peak / 2 ** 20).toFixed(0);
process.stdout.write(
  `${JSON.stringify({ isolation, items: ITEMS, ...seen, kills, restarts: engine.restarts, retried, seconds, heapMb, seed: values.seed })}\n`,
);
