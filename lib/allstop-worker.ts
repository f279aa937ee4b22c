/** The file that workers execute, threads and processes, which the package starts. */

import { isMainThread, workerData } from 'node:worker_threads';
import { isBag } from './base/arguments.ts';
import { attempt } from './base/thrown-value.ts';
import { workerVariables } from './cluster/variables/worker-variables.ts';
import { onlyForOwnWorkers } from './coordinator/threads/worker-module.ts';
import { type LooperWork, runLooper } from './looper/looper-loop.ts';
import type { WorkerSettings } from './pool/worker/messages.ts';
import { runClusterProcess, runClusterThread, showUncaught } from './pool/worker/worker-main.ts';
import { type QueueRunnerWork, runQueueRunner } from './queue/queue-runner-worker.ts';

type WorkerWork = LooperWork | QueueRunnerWork | WorkerSettings;

function run(work: WorkerWork): Promise<void> {
  if (work.kind === 'looper') return runLooper(work);
  if (work.kind === 'queue-runner') return runQueueRunner(work);
  showUncaught(work);
  return runClusterThread(work, workerVariables);
}

/**
 * Why the package has started this worker. A thread gets it as workerData, a process on its command
 * line, from where it goes: the module finds there what the strategy's `argv` says.
 *
 * @throws FailedPreconditionError: a program has imported this file
 */
function ownWork(): WorkerWork {
  const given = (): unknown => JSON.parse(process.argv[2] ?? '');
  const work: unknown = isMainThread ? attempt(given) : workerData;
  const kinds: unknown[] = ['looper', 'queue-runner', 'cluster'] satisfies WorkerWork['kind'][];
  if (!isBag(work) || !kinds.includes((work as WorkerWork).kind)) throw onlyForOwnWorkers();
  if (isMainThread) process.argv.splice(2, 1);
  return work as WorkerWork;
}

const work = ownWork();
const running = isMainThread
  ? runClusterProcess(work as WorkerSettings, workerVariables)
  : run(work);
running.catch((error: unknown) => {
  // As an uncaught exception the error ends the worker, whatever --unhandled-rejections says.
  queueMicrotask(() => {
    throw error;
  });
});
