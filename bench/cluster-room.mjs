/** Calls that all wait for room in the line at once: whether one costs more among many. */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { quick, report } from './rounds.mjs';

const ROUNDS = quick ? 1 : 3;
const SIZES = quick ? [1_000, 4_000] : [50_000, 100_000, 200_000, 400_000];
const module = new URL('cluster-tasks.mjs', import.meta.url);

/** Microseconds of processor time of one of `count` calls. */
async function usOf(count) {
  const strategy = new LocalStrategy({ module, workers: 2 });
  const cluster = new ClusterCoordinator(strategy, { maxQueued: 1_000 });
  await cluster.ready();
  const before = process.cpuUsage();
  const calls = [];
  for (let index = 0; index < count; index++) calls.push(cluster.run('increment', [index]));
  const results = await Promise.all(calls);
  const { user, system } = process.cpuUsage(before);
  await cluster.close();
  if (results.at(-1) !== count) throw new Error('The last result is wrong');
  return (user + system) / count;
}

await usOf(SIZES[0]); // warm-up
const sizes = SIZES.map((size) => [size, []]);
for (let round = 0; round < ROUNDS; round++) {
  for (const [size, costs] of sizes) {
    globalThis.gc();
    costs.push(await usOf(size));
  }
}
const quarter = sizes.find(([size]) => size === SIZES.at(-1) / 4);
report({ 'pool/room': { ours: sizes.at(-1)[1], peer: quarter[1], sizes } });
