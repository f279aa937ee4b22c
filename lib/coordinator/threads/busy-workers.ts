/**
 * What the workers of clusters run after a stop, and that the body of `Coordinator.run` has not
 * returned: told to the native thread that ends the process (`exitAfterStop`), which cannot ask
 * JavaScript.
 */

import type { NativeAttachment } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';

/** A function that a worker of this process runs. */
export type BusyWorker = {
  /** "worker:0 (thread 5) runs 'resize'" */
  text: string;
  startedAt: Date;
  /** Of the process that it runs in. */
  pid: number;
  /** Undefined: it runs in another process, in its main thread. */
  threadId: number | undefined;
};

/** For `explain()`: a worker that this thread has started, or what brings calls to workers elsewhere. */
export type ShownWorker = {
  /** The worker, and what it runs. */
  describe?(): string | string[];
  /** Which calls wait, and for what; which functions fail. */
  work?(): string[];
  /** What it runs; left out by a worker of another machine. */
  busy?(): BusyWorker[];
};

/** Of an Attachment. */
type Employer = {
  readonly workers: Map<object, ShownWorker>;
  readonly native: Pick<NativeAttachment, 'setBusyWorkers'>;
  listen(cause: 'stop', listener: () => void): () => boolean;
};

/** The attachments of which something still ran when they were last told. */
const told = new WeakSet<Employer>();
/** Since when the body of `Coordinator.run` runs. */
const bodies = new WeakMap<Employer, Date>();

/** The body of `Coordinator.run` begins. @returns a function to call when it has returned */
export function bodyRuns(attachment: Employer): () => void {
  bodies.set(attachment, new Date());
  const unlisten = attachment.listen('stop', () => tellBusyWorkers(attachment));
  return () => {
    unlisten();
    bodies.delete(attachment);
    updateBusyWorkers(attachment);
  };
}

/** Has `attachment` show the workers of `pool`, too. @returns what ends it */
export function showWorkersOf(pool: Employer, attachment: Employer): () => void {
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
export function tellBusyWorkers(attachment: Employer): void {
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
export function updateBusyWorkers(attachment: Employer): void {
  if (told.has(attachment)) tellBusyWorkers(attachment);
}
