/** A million closures in line: what one costs, and whether the last costs what the first did. */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { quick, report } from './rounds.mjs';

const COUNT = quick ? 2_000 : 1_000_000;
const module = new URL('cluster-tasks.mjs', import.meta.url);

function memory() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** Of so many in line: bytes and microseconds each. */
async function line(count) {
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
  if ((await remotes[count - 1].fetch()) !== count) throw new Error('a wrong result');
  await cluster.close();
  return { bytes, us, run };
}

await line(Math.min(COUNT, 20_000)); // warm
const half = await line(COUNT / 2);
const all = await line(COUNT);
const what = `cluster, ${COUNT.toLocaleString('en')} closures in line`;
const peerName = 'the same with half as many';
const row = (detail, unit, key) => ({
  what: `${what}: ${detail}`,
  unit,
  peerName,
  goal: { flat: true },
  ours: [all[key]],
  peer: [half[key]],
});
report([
  row('memory of one', 'bytes', 'bytes'),
  row('an awaited `schedule`', 'µs each', 'us'),
  row('then run', 'µs each', 'run'),
]);
