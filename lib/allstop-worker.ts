/** The file that workers execute, threads and processes, which the package starts. */

import { isMainThread, workerData } from 'node:worker_threads';
import type { WorkerSettings } from './cluster/worker/protocol.ts';
import { runClusterProcess } from './cluster/worker/worker-process.ts';
import { runClusterThread } from './cluster/worker/worker-thread.ts';
import { type LooperWork, runLooper } from './looper/looper-worker.ts';
import { type QueueRunnerWork, runQueueRunner } from './queue/queue-runner-worker.ts';

type WorkerWork = LooperWork | QueueRunnerWork | WorkerSettings;

function run(work: WorkerWork): Promise<void> {
  if (work.kind === 'looper') return runLooper(work);
  return work.kind === 'queue-runner' ? runQueueRunner(work) : runClusterThread(work);
}

// A thread gets its settings as workerData, a process on its command line, from where they go: the
// module finds there what the strategy's `argv` says.
const running = isMainThread
  ? runClusterProcess(JSON.parse(process.argv.splice(2, 1)[0] ?? 'null') as WorkerSettings)
  : run(workerData as WorkerWork);
running.catch((error: unknown) => {
  // As an uncaught exception the error ends the worker, whatever --unhandled-rejections says.
  queueMicrotask(() => {
    throw error;
  });
});
