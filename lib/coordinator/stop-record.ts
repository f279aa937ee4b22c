/** The public stop record: who stopped a coordinator, when, and why. */

import type { NativeRequester, Via } from '../native/binding.ts';

/** The thread that requested a stop, and the call site. */
export type StopRequester = {
  language: 'js' | 'native';
  via: Via;
  threadName: string;
  /** JavaScript's threadId, or the OS thread id for a native thread. */
  threadId: number;
  pid: number;
  host?: string;
  /** JOB:INDEX of the cluster's worker that the thread belongs to, if it is known. */
  worker?: string;
  /** The stack of the call. */
  stack?: string;
  signal?: NodeJS.Signals;
};

/** An error reported after the stop, or, where no caller could get it, after a completed `join()`. */
export type SuppressedError = { error: unknown; requester: StopRequester; at: Date };

/** One stop: who requested it, when, why, and the errors that came later. */
export type StopRecord = {
  id: string;
  /** 'clean': an error of a clean-stop type was reported. */
  kind: 'plain' | 'clean' | 'error';
  error?: unknown;
  requestedAt: Date;
  requester: StopRequester;
  /** The first 16 later errors. */
  suppressed: SuppressedError[];
  /** The number of all later errors. */
  suppressedCount: number;
};

/** The cluster's worker (JOB:INDEX) that a requester is; its `host` if that is not this one. */
export type WorkerOfRequester = { worker?: string | undefined; host?: string | undefined };

let workerOf: (requester: NativeRequester) => WorkerOfRequester = () => ({});

/** From now on `find` tells which worker of a cluster a requester is. Set by lib/cluster. */
export function findWorkersBy(find: (requester: NativeRequester) => WorkerOfRequester): void {
  workerOf = find;
}

export function toRequester(from: NativeRequester): StopRequester {
  const { worker, host } = workerOf(from);
  // Spread, not assigned, since a program may have put setters on Object.prototype.
  return {
    language: from.native ? 'native' : 'js',
    via: from.via,
    threadName: from.threadName,
    threadId: from.threadId,
    pid: from.pid,
    ...(host !== undefined && { host }),
    ...(worker !== undefined && { worker }),
    ...(from.stack !== '' && { stack: from.stack }),
    ...(from.signal !== '' && { signal: from.signal as NodeJS.Signals }),
  };
}
