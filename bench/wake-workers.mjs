/** The time from a stop request in JavaScript until the last of 8 blocked workers is awake. */

import { Worker } from 'node:worker_threads';
import { Coordinator } from '../dist/index.js';
import { inTurn, report } from './rounds.mjs';

const WORKERS = 8;
const [OURS, PEER, QUIT] = [1, 2, 3];

const coordinator = new Coordinator();
// Five shared words, each in a cache line of its own: the number of the sample, its kind, the flag
// that the peer waits on, how many workers are about to wait, how many are awake.
const words = new Int32Array(new SharedArrayBuffer(5 * 64));
const [SAMPLE, KIND, FLAG, WAITING, AWAKE] = [0, 16, 32, 48, 64];
const awakeAt = new BigInt64Array(new SharedArrayBuffer(WORKERS * 8));

const workers = Array.from({ length: WORKERS }, (_, index) => {
  const workerData = { handle: coordinator.handle, words, awakeAt, index };
  return new Worker(new URL('./wake-workers-worker.mjs', import.meta.url), { workerData });
});

function awaitAll(word) {
  for (;;) {
    const count = Atomics.load(words, word);
    if (count === WORKERS) return;
    Atomics.wait(words, word, count);
  }
}

function begin(kind) {
  Atomics.store(words, WAITING, 0);
  Atomics.store(words, AWAKE, 0);
  Atomics.store(words, FLAG, 0);
  Atomics.store(words, KIND, kind);
  Atomics.add(words, SAMPLE, 1);
  Atomics.notify(words, SAMPLE);
}

function sample(kind, request) {
  begin(kind);
  awaitAll(WAITING);
  // All workers are about to wait: give them 3 ms. Nothing wakes this wait.
  Atomics.wait(words, FLAG, 0, 3);
  const start = process.hrtime.bigint();
  request();
  awaitAll(AWAKE);
  const last = awakeAt.reduce((latest, at) => (at > latest ? at : latest));
  return Number(last - start) / 1000;
}

const result = await inTurn({
  rounds: 21,
  samples: 30,
  warmUp: 100, // V8 has to compile in nine isolates
  ours: () => {
    const us = sample(OURS, () => coordinator.requestStop());
    coordinator.clearStop();
    return us;
  },
  peer: () =>
    sample(PEER, () => {
      Atomics.store(words, FLAG, 1);
      Atomics.notify(words, FLAG);
    }),
});

begin(QUIT);
await Promise.all(workers.map((worker) => new Promise((resolve) => worker.on('exit', resolve))));
report({ 'wake/workers': result });
