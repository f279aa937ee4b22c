// A worker is terminated in the middle of a spawn, while a plain Worker of its own asks for
// Coordinator.current(), which waits for that spawn. argv: 'terminate', or 'exit' for an end of the
// whole process.
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const here = new URL(import.meta.url);
const SPAWNING = 0;
const ASKING = 1;
const NEVER = 2;

function set(words, word) {
  Atomics.store(words, word, 1);
  Atomics.notify(words, word);
}

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(12));
  const spawner = new Worker(here, { workerData: { words } });
  while (Atomics.load(words, ASKING) === 0) await sleep(5);
  await sleep(100); // most likely it waits for the spawn by now
  if (process.argv[2] === 'terminate') await spawner.terminate();
  say('ended');
  process.exit(7);
} else if (workerData.asks) {
  const { words } = workerData;
  Atomics.wait(words, SPAWNING, 0);
  set(words, ASKING);
  Coordinator.current();
} else {
  const { words } = workerData;
  new Worker(here, { workerData: { words, asks: true } });
  const asking = {
    // Called while the values for the new worker are cloned: the spawn stays as it is.
    get value() {
      set(words, SPAWNING);
      return Atomics.wait(words, NEVER, 0);
    },
  };
  new Coordinator().spawn(new URL('data:text/javascript,'), { workerData: asking });
}
