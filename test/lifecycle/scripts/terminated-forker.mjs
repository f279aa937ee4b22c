// A worker is terminated in the middle of coord.fork(): the line to the process is open, and the
// process is not started yet.
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { pipeEnds } from '../../fixtures/pipe-ends.mjs';
import { say } from './say.mjs';

const FORKING = 0;
const NEVER = 1;
const PATIENCE_MS = 5_000;

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(8));
  const before = pipeEnds();
  const forker = new Worker(new URL(import.meta.url), { workerData: words });
  while (Atomics.load(words, FORKING) === 0) await sleep(5);
  const open = pipeEnds();
  await forker.terminate();
  // A native thread closes them.
  const end = performance.now() + PATIENCE_MS;
  while (pipeEnds() > before && performance.now() < end) await sleep(5);
  say('terminated', { hadMore: open > before, left: pipeEnds() - before });
} else {
  const env = {
    // Called while the environment is copied for the process.
    get VALUE() {
      Atomics.store(workerData, FORKING, 1);
      return Atomics.wait(workerData, NEVER, 0);
    },
  };
  new Coordinator().fork(new URL('./forked.mjs', import.meta.url), [], { env });
}
