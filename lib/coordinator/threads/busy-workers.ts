/**
 * What the workers of clusters run after a stop, and that the body of `Coordinator.run` has not
 * returned: told to the native thread that ends the process (`exitAfterStop`), which cannot ask
 * JavaScript.
 */

import { binding } from '../../native/native.ts';
import type { Attachment, ShownWorker } from '../attachment.ts';

/** The attachments of which something still ran when they were last told. */
const told = new WeakSet<Attachment>();
/** Since when the body of `Coordinator.run` runs. */
export const bodies: Map<Attachment, Date> = new Map();

/** Has `attachment` show the workers of `pool`, too. @returns what ends it */
export function showWorkersOf(pool: Attachment, attachment: Attachment): () => void {
  const all = (): ShownWorker[] => [...pool.workers.values()];
  attachment.workers.set(pool, {
    describe: () => all().flatMap((worker) => worker.describe?.() ?? []),
    work: () => all().flatMap((worker) => worker.work?.() ?? []),
  });
  return () => attachment.workers.delete(pool);
}

/** Milliseconds. From here on the native thread counts, by a clock that nobody sets. */
function ageOf(start: Date): number {
  return Math.max(0, Date.now() - start.getTime());
}

/** Called at the stop; for a pool, also at the stop that closes it, and when its drain is over. */
export function tellBusyWorkers(attachment: Attachment): void {
  const busy = Array.from(attachment.workers.values(), (worker) => worker.busy?.() ?? []).flat();
  const numbers = busy.flatMap(({ startedAt, pid, threadId }) => [
    ageOf(startedAt),
    threadId === undefined ? pid : binding().osThreadIdOf(threadId),
  ]);
  const texts = busy.map(({ text }) => text);
  const bodySince = bodies.get(attachment);
  if (bodySince !== undefined) {
    texts.push('the function that was given to Coordinator.run runs');
    numbers.push(ageOf(bodySince), 0);
  }
  attachment.native.setBusyWorkers(texts, numbers);
  if (texts.length > 0) told.add(attachment);
  else told.delete(attachment);
}

/** Called when a function has ended, or a worker, or the body of `Coordinator.run`. */
export function updateBusyWorkers(attachment: Attachment): void {
  if (told.has(attachment)) tellBusyWorkers(attachment);
}
