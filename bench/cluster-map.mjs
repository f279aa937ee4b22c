/** `map` over many trivial items beside the same by `run`, all at once: time and memory. */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { inTurn, quick, report, usSince } from './rounds.mjs';

const COUNT = quick ? 2_000 : 100_000;
const SAMPLES = 16; // of the memory, spread over the results
const module = new URL('cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
await cluster.ready();

const heap = () => {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
};

function* numbers() {
  for (let item = 0; item < COUNT; item++) yield item;
}

function check(item, result) {
  if (result !== item + 1) throw new Error(`${item} + 1 is not ${result}`);
}

/** Calls `onItem` with the number of each result. */
async function byMap(onItem) {
  let item = 0;
  for await (const result of cluster.map('increment', numbers())) {
    check(item, result);
    onItem?.(item);
    item += 1;
  }
  if (item !== COUNT) throw new Error(`${item} results`);
}

async function byRun(onItem) {
  const runs = [];
  for (const item of numbers()) runs.push(cluster.run('increment', [item]));
  onItem?.(0);
  for (const [item, run] of runs.entries()) check(item, await run);
}

async function timeOf(way) {
  const start = process.hrtime.bigint();
  await way();
  return usSince(start) / COUNT;
}

/** The most kilobytes on the heap, of some samples, more than before. */
async function memoryOf(way) {
  const before = heap();
  let most = 0;
  const every = Math.floor(COUNT / SAMPLES);
  await way((item) => {
    if (item % every === 0) most = Math.max(most, heap() - before);
  });
  return most / 1024;
}

const time = await inTurn({
  rounds: 7,
  samples: 1,
  ours: () => timeOf(byMap),
  peer: () => timeOf(byRun),
});
const memory = await inTurn({
  rounds: 3,
  samples: 1,
  ours: () => memoryOf(byMap),
  peer: () => memoryOf(byRun),
});
await cluster.close();
report({ 'pool/map': time, 'pool/map-memory': memory });
