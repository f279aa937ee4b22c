/**
 * A worker of wake-workers.mjs: waits in the way that the sample asks for, and notes when it woke.
 */

import { workerData } from 'node:worker_threads';
import { Coordinator } from '../dist/index.js';

const { handle, words, awakeAt, index } = workerData;
const [SAMPLE, KIND, FLAG, WAITING, AWAKE] = [0, 16, 32, 48, 64];
const [OURS, PEER] = [1, 2];
const coordinator = Coordinator.attach(handle);

for (let seen = 0; ; ) {
  Atomics.wait(words, SAMPLE, seen);
  const sample = Atomics.load(words, SAMPLE);
  if (sample === seen) continue;
  seen = sample;
  const kind = words[KIND];
  if (kind !== OURS && kind !== PEER) break;
  Atomics.add(words, WAITING, 1);
  Atomics.notify(words, WAITING);
  if (kind === OURS) coordinator.waitForStopSync();
  else Atomics.wait(words, FLAG, 0);
  awakeAt[index] = process.hrtime.bigint();
  Atomics.add(words, AWAKE, 1);
  Atomics.notify(words, AWAKE);
}
