/**
 * node --expose-gc --import ./count-messages.mjs calls.mjs WAVES TRIPS: runs WAVES waves of
 * calls, each at once, and TRIPS calls one after the other, on two threads. Prints
 * { waveMessages, tripMessages, bytes } as JSON: messages between threads, and bytes of the heap of
 * the main thread, for one call.
 */

import { ClusterCoordinator, LocalStrategy } from '../../dist/cluster/index.js';
import { messages } from './count-messages.mjs';

const WAVE = 1_000;
const WARM_UP = 3_000; // calls, until V8 has compiled what runs
const [waves, trips] = process.argv.slice(2).map(Number);
const module = new URL('../cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
await cluster.ready();

async function wave() {
  const runs = [];
  for (let index = 0; index < WAVE; index++) runs.push(cluster.run('add', [index, 1]));
  await Promise.all(runs);
}

async function trip(count) {
  for (let index = 0; index < count; index++) await cluster.run('add', [index, 1]);
}

await wave();
await trip(WARM_UP);
globalThis.gc();
const heap = process.memoryUsage().heapUsed;
const before = messages();
await trip(trips);
const tripMessages = (messages() - before) / trips;
const bytes = (process.memoryUsage().heapUsed - heap) / trips;
const beforeWaves = messages();
for (let index = 0; index < waves; index++) await wave();
const waveMessages = waves === 0 ? 0 : (messages() - beforeWaves) / (waves * WAVE);
await cluster.close();
process.stdout.write(`${JSON.stringify({ waveMessages, tripMessages, bytes })}\n`);
