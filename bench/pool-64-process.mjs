/**
 * node pool-64-process.mjs ours|piscina WORKERS: prints { startMs, mb, us } as JSON: milliseconds
 * until all workers have run a function, megabytes of a worker, microseconds of a trivial call.
 */

import { fileURLToPath } from 'node:url';
import { createPool } from '../dist/pool/index.js';
import { importPeer } from './peers.mjs';
import { median } from './statistics.mjs';

const WAVE = 5_000;
const WAVES = 5;
const [, , kind, count] = process.argv;
const workers = Number(count);
const tasks = new URL('cluster-peers/pool-64.mjs', import.meta.url);

const pools = {
  ours() {
    const pool = createPool(tasks, { workers });
    return { run: (name, value) => pool.run(name, [value]) };
  },
  async piscina() {
    const Piscina = await importPeer('piscina');
    const size = { minThreads: workers, maxThreads: workers };
    const pool = new Piscina({ filename: fileURLToPath(tasks), ...size });
    return { run: (name, value) => pool.run(value, { name }) };
  },
};

/** Runs once on each worker: each waits until all are there. */
async function meet(pool) {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const all = Array.from({ length: workers }, () => pool.run('meet', { word, workers }));
  await Promise.all(all);
}

async function wave(pool) {
  const start = performance.now();
  const runs = [];
  for (let index = 0; index < WAVE; index++) runs.push(pool.run('increment', index));
  const results = await Promise.all(runs);
  if (results.at(-1) !== WAVE) throw new Error('The last result is wrong');
  return ((performance.now() - start) * 1_000) / WAVE;
}

const before = process.memoryUsage.rss();
const start = performance.now();
const pool = await pools[kind]();
await meet(pool);
const startMs = performance.now() - start;
const mb = (process.memoryUsage.rss() - before) / 2 ** 20 / workers;
const waves = [];
for (let index = 0; index < WAVES; index++) waves.push(await wave(pool));
const us = median(waves);
process.stdout.write(JSON.stringify({ startMs, mb, us }), () => process.exit());
