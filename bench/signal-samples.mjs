/**
 * How long after a stop a native thread has seen it, while the main thread is busy. Run by
 * signal.mjs in each runtime: prints { coordinator, plain }, two arrays of milliseconds.
 */

import { Coordinator } from '../dist/index.js';
import { addon } from './addon.mjs';

const STOP_MS = 100;
const BUSY_MS = 500;
const samples = Number(process.argv.at(-1));

/**
 * @param {bigint} start - nanoseconds
 * @param {bigint} end - nanoseconds
 */
const msSince = (start, end) => Number(end - start) / 1e6;

/** Milliseconds from the moment of the stop, STOP_MS after the start, to that of its being seen. */
async function sample(signal, stop) {
  addon.work(signal);
  const start = addon.now();
  stop();
  while (msSince(start, addon.now()) < BUSY_MS);
  while (addon.seen() === 0n) await new Promise((resolve) => setImmediate(resolve));
  return msSince(start, addon.seen()) - STOP_MS;
}

const coordinator = [];
const plain = [];
for (let i = 0; i < samples; i++) {
  const coord = new Coordinator();
  coordinator.push(await sample(coord.signal, () => coord.stopAfter(STOP_MS)));
  await coord.join().catch(() => {}); // its DeadlineExceededError
  const controller = new AbortController();
  const abort = () => setTimeout(() => controller.abort(), STOP_MS);
  plain.push(await sample(controller.signal, abort));
}
process.stdout.write(`${JSON.stringify({ coordinator, plain })}\n`, () => process.exit());
