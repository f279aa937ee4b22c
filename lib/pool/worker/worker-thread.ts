/** The main function of a cluster's worker thread. */

import nodeModule from 'node:module';
import workerThreads, { parentPort } from 'node:worker_threads';
import { shown } from '../../base/thrown-value.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { handlesUncaught } from '../../coordinator/threads/watch.ts';
import { onlyForOwnWorkers } from '../../coordinator/threads/worker-module.ts';
import { FunctionRunner } from './function-runner.ts';
import { addLasting } from './lasting-listeners.ts';
import type { FromWorker, ToWorker, WorkerSettings } from './messages.ts';
import { postOutput } from './output.ts';
import type { Movable } from './transfer.ts';
import type { MakeWorkerVariables } from './variables.ts';

/** The threads of Bun and Deno write to the descriptors themselves. */
const isNode = process.versions['bun'] === undefined && process.versions['deno'] === undefined;

/**
 * Shows the error that ends this thread, as Node does for a process: an error of a timer, say, may
 * come when no call runs, and so reaches no caller. Called once in a thread.
 */
export function showUncaught({ job, index }: WorkerSettings): void {
  addLasting(process, {
    uncaughtExceptionMonitor: (error: unknown) => {
      if (handlesUncaught()) return;
      process.stderr.write(`Uncaught in ${job}:${index}: ${shown(error)}\n`);
    },
  });
}

export async function runClusterThread(
  settings: WorkerSettings,
  makeVariables: MakeWorkerVariables,
): Promise<void> {
  const port = parentPort;
  const coordinator = Coordinator.current();
  if (port === null || coordinator === undefined) throw onlyForOwnWorkers();
  const channel = {
    post: (message: FromWorker, transfer?: readonly Movable[]): void =>
      port.postMessage(message, transfer as ArrayBuffer[]),
    end: (message: FromWorker): void => port.postMessage(message), // the pool ends the thread
  };
  const onWritten = isNode ? postOutput(channel.post) : undefined;
  const runner = new FunctionRunner(channel, coordinator, settings, makeVariables);
  showWorkerData(settings.workerData);
  // Before setup functions run: an operation on a variable gets its answer by a message.
  addLasting(port, {
    message: (message: ToWorker) => {
      if (message.kind === 'written') onWritten?.(message.descriptor);
      else runner.receive(message);
    },
    // The calls of a message that cannot be deserialized would never end. The worker throws and
    // so ends itself, and its calls run again.
    messageerror: (error: unknown) => {
      throw error;
    },
    // Nor would those of a thread whose function has closed the port.
    close: () => {
      throw new Error('The parentPort of the thread was closed');
    },
  });
  await runner.load();
}

/** From now on `workerData` of node:worker_threads is the user's: our own settings were there. */
function showWorkerData(workerData: unknown): void {
  // Neither throws where another runtime's module cannot be changed.
  Reflect.set(workerThreads, 'workerData', workerData);
  nodeModule.syncBuiltinESMExports?.();
}
