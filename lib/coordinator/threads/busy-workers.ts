/**
 * What the workers of clusters run after a stop of theirs, or of a coordinator that is to end the
 * process: told to the native thread that ends the process
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

/** The attachments of this thread's clusters, from their start until their end. */
const employers = new Set<Employer>();
/** The attachments whose workers are told again when what they run changes. */
const told = new WeakSet<Employer>();

export function addEmployer(attachment: Employer): void {
  employers.add(attachment);
}

/** Called when the cluster has ended, or was stopped: what its workers still run stays told. */
export function removeEmployer(attachment: Employer): void {
  employers.delete(attachment);
}

/** Called at the stop of a coordinator that ends the process: it ends the workers of all clusters. */
export function tellAllBusyWorkers(): void {
  for (const attachment of employers) tellBusyWorkers(attachment);
}

/** Called at the stop of the cluster. */
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
  // A cluster that was not stopped itself may be given functions after this.
  if (busy.length > 0 || employers.has(attachment)) told.add(attachment);
  else told.delete(attachment);
}

/** Called when a worker was sent functions, when a function has ended, or a worker. */
export function updateBusyWorkers(attachment: Employer): void {
  if (told.has(attachment)) tellBusyWorkers(attachment);
}
