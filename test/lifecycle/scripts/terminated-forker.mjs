// A worker is terminated in the middle of coord.fork(): the line to the process is open, and the
// process is not started yet.
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const FORKING = 0;
const NEVER = 1;
const PATIENCE_MS = 5_000;

/** How many ends of pipes this process has. */
function ends() {
  const isPipe = (descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('pipe:');
    } catch {
      return false; // that of readdirSync
    }
  };
  return readdirSync('/proc/self/fd').filter(isPipe).length;
}

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(8));
  const before = ends();
  const forker = new Worker(new URL(import.meta.url), { workerData: words });
  while (Atomics.load(words, FORKING) === 0) await sleep(5);
  const open = ends();
  await forker.terminate();
  // A native thread closes them.
  const end = performance.now() + PATIENCE_MS;
  while (ends() > before && performance.now() < end) await sleep(5);
  say('terminated', { hadMore: open > before, left: ends() - before });
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
