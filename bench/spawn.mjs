/** The time from the call of spawn() until the new worker runs its first statement. */

import { Worker } from 'node:worker_threads';
import { Coordinator } from '../dist/index.js';
import { inTurn, report } from './rounds.mjs';

const url = new URL('./spawn-worker.mjs', import.meta.url);
const coordinator = new Coordinator();

async function sample(start) {
  const running = new BigInt64Array(new SharedArrayBuffer(8));
  const before = process.hrtime.bigint();
  const worker = start(url, { workerData: running });
  await new Promise((resolve) => {
    worker.on('exit', resolve); // one at a time
  });
  return Number(running[0] - before) / 1e6;
}

report({
  spawn: await inTurn({
    rounds: 21,
    samples: 7,
    ours: () => sample((...args) => coordinator.spawn(...args)),
    peer: () => sample((...args) => new Worker(...args)),
  }),
});
