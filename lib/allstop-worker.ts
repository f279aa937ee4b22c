/** What the workers execute that the package starts for a module of the program's. */

import { workerData } from 'node:worker_threads';
import { type LooperWork, runLooper } from './looper-worker.ts';
import { type QueueRunnerWork, runQueueRunner } from './queue-runner-worker.ts';

const work = workerData as LooperWork | QueueRunnerWork;
const running = work.kind === 'looper' ? runLooper(work) : runQueueRunner(work);
running.catch((error: unknown) => {
  // Uncaught, whatever becomes of unhandled rejections here.
  queueMicrotask(() => {
    throw error;
  });
});
