/**
 * The error that a worker died of. Node's `error` event in the parent loses the class of the
 * error, so the worker's own thread encodes it before it dies.
 */

import { workerThreads } from '../../base/builtins.ts';
import { binding, onFirstUse } from '../../native/native.ts';
import { decode, encode, restoreClass } from '../../record/encoded-error.ts';

/**
 * The errors of dying workers, by threadId. An entry stays until the worker has exited: several
 * coordinators may watch the worker, and `takeUncaught` gives an error only once.
 */
const uncaught = new Map<number, { value: unknown }>();

/**
 * The error that a worker died of. `received`: the error of Node's event, used if the worker
 * could not encode its own (a Worker that does not load the package).
 */
export function causeOfDeath(threadId: number, received: unknown): unknown {
  let known = uncaught.get(threadId);
  if (known === undefined) {
    const bytes = binding().takeUncaught(threadId);
    known = { value: bytes === null ? restoreClass(received) : decode(bytes).value };
    uncaught.set(threadId, known);
  }
  return known.value;
}

/** Call it when a worker has exited: removes its entries from the tables by threadId. */
export function forgetWorker(threadId: number): void {
  binding().forgetSpawned(threadId);
  uncaught.delete(threadId);
}

/** Whether the program handles uncaught errors in this thread, which then goes on. */
export const handlesUncaught = (): boolean =>
  process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback();

// Node emits 'uncaughtExceptionMonitor' before the worker dies of the error. A listener does not
// prevent the death.
onFirstUse.push(() => {
  if (workerThreads().isMainThread) return;
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    binding().noteUncaught(encode(error).bytes, !handlesUncaught());
  });
});
