/**
 * What a worker died of, class and fields intact: its own thread encodes the error before it
 * dies, since Node's `error` event, from which its parent learns of it, loses the class.
 */

import { isMainThread } from 'node:worker_threads';
import { onFirstUse } from '../native/doorbell.ts';
import { binding } from '../native/native.ts';
import { decode, encode, restoreClass } from '../record/error-record.ts';

/** What workers died of, for all who watch them, until they have exited. */
const uncaught = new Map<number, { value: unknown }>();

/** Its own thread has encoded the error if it could: class and fields intact. */
export function causeOfDeath(threadId: number, received: unknown): unknown {
  let known = uncaught.get(threadId);
  if (known === undefined) {
    const bytes = binding().takeUncaught(threadId);
    known = { value: bytes === null ? restoreClass(received) : decode(bytes).value };
    uncaught.set(threadId, known);
  }
  return known.value;
}

/** A worker of `startWorker` has exited. */
export function forgetWorker(threadId: number): void {
  binding().forgetSpawned(threadId);
  uncaught.delete(threadId);
}

// In a worker, an error that will kill it is encoded while class and fields are
// there; the thread that has registered the worker takes it from there.
onFirstUse.push(() => {
  if (isMainThread) return;
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    binding().noteUncaught(encode(error).bytes);
  });
});
