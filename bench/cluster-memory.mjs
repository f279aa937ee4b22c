/** A million queued calls: the cost of each, and whether the cost grows with their number. */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { quick, report } from './rounds.mjs';

const COUNT = quick ? 2_000 : 1_000_000;
const module = new URL('cluster-tasks.mjs', import.meta.url);

function memory() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** Queues and runs `count` calls. Returns bytes and microseconds for each. */
async function costOf(count) {
  const strategy = new LocalStrategy({ module, workers: 1 });
  const cluster = new ClusterCoordinator(strategy, { maxQueued: Number.POSITIVE_INFINITY });
  await cluster.ready();
  const word = new Int32Array(new SharedArrayBuffer(4));
  const blocked = await cluster.schedule('block', [word]);
  const remotes = [];
  remotes.length = count;
  const before = memory();
  const start = performance.now();
  for (let index = 0; index < count; index++) {
    remotes[index] = await cluster.schedule('add', [index, 1]);
  }
  const us = ((performance.now() - start) * 1_000) / count;
  const bytes = (memory() - before) / count;
  Atomics.store(word, 0, 1);
  Atomics.notify(word, 0);
  await blocked.fetch();
  const began = performance.now();
  await cluster.join();
  const run = ((performance.now() - began) * 1_000) / count;
  if ((await remotes[count - 1].fetch()) !== count) throw new Error('the last result is wrong');
  await cluster.close();
  return { bytes, us, run };
}

await costOf(Math.min(COUNT, 20_000)); // warm-up
const sizes = [];
for (const parts of [8, 4, 2, 1]) sizes.push([COUNT / parts, await costOf(COUNT / parts)]);
const row = (key) => {
  const each = sizes.map(([size, cost]) => [size, [cost[key]]]);
  return { ours: each.at(-1)[1], peer: each.at(-2)[1], sizes: each };
};
report({
  'pool/queued-bytes': row('bytes'),
  'pool/queued-schedule': row('us'),
  'pool/queued-run': row('run'),
});
