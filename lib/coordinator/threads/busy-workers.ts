/**
 * What the workers of clusters run after a stop: told to the native thread that ends the process
 * (`exitAfterStop`), which cannot ask JavaScript.
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

/** A worker that this thread has started. */
export type ShownWorker = {
  /** For `explain()`. */
  describe(): string;
  /** What it runs; left out by a worker of another machine. */
  busy?(): BusyWorker[];
};

/** Of an Attachment. */
type Employer = {
  readonly workers: ReadonlyMap<object, ShownWorker>;
  readonly native: Pick<NativeAttachment, 'setBusyWorkers'>;
};

/** The attachments whose workers ran something when they were last told. */
const told = new WeakSet<Employer>();

/** Called at the stop. */
export function tellBusyWorkers(attachment: Employer): void {
  const busy = Array.from(attachment.workers.values(), (worker) => worker.busy?.() ?? []).flat();
  const numbers = busy.flatMap(({ startedAt, pid, threadId }) => [
    startedAt.getTime(),
    threadId === undefined ? pid : binding().osThreadIdOf(threadId),
  ]);
  attachment.native.setBusyWorkers(
    busy.map(({ text }) => text),
    numbers,
  );
  if (busy.length > 0) told.add(attachment);
  else told.delete(attachment);
}

/** Called when a function has ended, or a worker. */
export function updateBusyWorkers(attachment: Employer): void {
  if (told.has(attachment)) tellBusyWorkers(attachment);
}
