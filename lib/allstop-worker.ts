/** What the workers execute that the package starts for a module of the program's. */

import { workerData } from 'node:worker_threads';
import { runClusterThread } from './cluster/local/worker-thread.ts';
import type { WorkerSettings } from './cluster/protocol.ts';
import { type LooperWork, runLooper } from './looper-worker.ts';
import { type QueueRunnerWork, runQueueRunner } from './queue-runner-worker.ts';

type WorkerWork = LooperWork | QueueRunnerWork | WorkerSettings;

function run(work: WorkerWork): Promise<void> {
  if (work.kind === 'looper') return runLooper(work);
  return work.kind === 'queue-runner' ? runQueueRunner(work) : runClusterThread(work);
}

run(workerData as WorkerWork).catch((error: unknown) => {
  // Uncaught, whatever becomes of unhandled rejections here.
  queueMicrotask(() => {
    throw error;
  });
});
