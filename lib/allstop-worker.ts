/** What the workers execute, threads and processes, that the package starts for a module. */

import { isMainThread, workerData } from 'node:worker_threads';
import { runClusterProcess } from './cluster/pool/worker-process.ts';
import { runClusterThread } from './cluster/pool/worker-thread.ts';
import type { WorkerSettings } from './cluster/protocol.ts';
import { type LooperWork, runLooper } from './looper-worker.ts';
import { type QueueRunnerWork, runQueueRunner } from './queue-runner-worker.ts';

type WorkerWork = LooperWork | QueueRunnerWork | WorkerSettings;

function run(work: WorkerWork): Promise<void> {
  if (work.kind === 'looper') return runLooper(work);
  return work.kind === 'queue-runner' ? runQueueRunner(work) : runClusterThread(work);
}

/** A process has it on its command line. */
const running = isMainThread
  ? runClusterProcess(JSON.parse(process.argv[2] ?? 'null') as WorkerSettings)
  : run(workerData as WorkerWork);
running.catch((error: unknown) => {
  // Uncaught, whatever becomes of unhandled rejections here.
  queueMicrotask(() => {
    throw error;
  });
});
