/** From the end of the last thread until `join()` has settled. */

import { Coordinator } from '../dist/index.js';
import { addon } from './addon.mjs';
import { alone, report, sleep, usSince } from './rounds.mjs';

const coordinator = new Coordinator();

async function task() {
  let ended;
  void coordinator.start(async () => {
    await sleep(1);
    ended = process.hrtime.bigint();
  });
  await coordinator.join();
  return usSince(ended);
}

async function nativeThread() {
  addon.runThread(coordinator);
  await coordinator.join();
  return usSince(addon.start());
}

/** Microseconds from a worker's last statement to its `exit` event, which is Node's own share. */
const lastStatementToExit = [];

async function worker() {
  const ended = new BigInt64Array(new SharedArrayBuffer(8));
  const spawned = coordinator.spawn(new URL('./join-latency-worker.mjs', import.meta.url), {
    workerData: ended,
  });
  let exited;
  spawned.prependListener('exit', () => {
    exited = process.hrtime.bigint();
  });
  await coordinator.join();
  const us = usSince(exited);
  lastStatementToExit.push(Number(exited - ended[0]) / 1000);
  return us;
}

const tasks = await alone({ ours: task, rounds: 21, samples: 40 });
const natives = await alone({ ours: nativeThread, rounds: 21, samples: 40 });
const workers = await alone({ ours: worker, rounds: 21, samples: 5 });

report({
  'join/task': tasks,
  'join/native': natives,
  'join/worker': workers,
  'join/exit': { ours: lastStatementToExit },
});
