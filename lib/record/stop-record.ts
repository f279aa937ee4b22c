/** The public stop record: who stopped a coordinator, when, and why; and the errors in it. */

import {
  type NativeAttachment,
  type NativeRecord,
  type NativeRequester,
  STOP_KINDS,
  type Via,
} from '../native/binding.ts';
import { binding } from '../native/native.ts';
import { decode } from './encoded-error.ts';
import type { Carried } from './error-identity.ts';

/** The thread that requested a stop, and the call site. */
export type StopRequester = {
  /** Whether JavaScript or native code (C, C++, Rust) requested the stop. */
  language: 'js' | 'native';
  /**
   * What requested the stop:
   *
   * - 'call': a call of `requestStop`, or the end of the body of `Coordinator.run`
   * - 'exception': an error of `stopOnException`, `start`, a looper, an op of a QueueRunner, a
   *   registered promise, a native thread, or the body of `Coordinator.run`
   * - 'signal': a signal of the process (`stopOnSignals`)
   * - 'abort': an AbortSignal (`stopOnAbort`)
   * - 'close': an event of a resource (`stopOnClose`)
   * - 'timeout': a deadline (`stopAfter`)
   * - 'parent': the stop of the parent of a `child`; the other fields are those of that stop
   * - 'worker-exit': a Worker or child process that died
   * - 'uncaught': an uncaught error (`stopOnUncaught`)
   * - 'hook': an error of a hook (`onStop`)
   * - 'defer': an error of a deferred function (`defer`)
   */
  via: Via;
  /** The name of the thread: as registered, else the one it has in the operating system. */
  threadName: string;
  /** JavaScript's threadId, or the OS thread id for a native thread. */
  threadId: number;
  /** Of the thread's process, or of the process that died. */
  pid: number;
  /** The name of the thread's machine. Left out: this machine. */
  host?: string;
  /** JOB:INDEX of the cluster's worker that the thread belongs to, if it is known. */
  worker?: string;
  /**
   * The stack of the call, without a title; of the stop at the end of `Coordinator.run`, after a line
   * that says so, that of `run`. Left out if it is not known.
   */
  stack?: string;
  /** With via 'signal': that signal. With via 'worker-exit': the signal that killed the process. */
  signal?: NodeJS.Signals;
};

/** An error reported after the stop, or, where no caller could get it, after a completed `join()`. */
export type SuppressedError = {
  /** The error: in the thread that reported it, the identical value. */
  error: unknown;
  /** Who reported it, and by what. */
  requester: StopRequester;
  /** When it was reported. */
  at: Date;
};

/** One stop: who requested it, when, why, and the errors that came later. */
export type StopRecord = {
  /** Names this stop: the same in every thread, child and process that sees the stop. */
  id: string;
  /**
   * 'plain': requested without an error. 'clean': with an error of `cleanStopErrors`, which no join
   * throws. 'error': with another error, which joins throw.
   */
  kind: 'plain' | 'clean' | 'error';
  /** The error of a 'clean' stop or an 'error'; left out of a 'plain' stop. */
  error?: unknown;
  /** When the stop was requested, by the clock of the requester's machine. */
  requestedAt: Date;
  /** Who requested the stop, and by what. */
  requester: StopRequester;
  /** The first 16 later errors. */
  suppressed: SuppressedError[];
  /** The number of all later errors. */
  suppressedCount: number;
};

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
    ...(from.signal !== '' && { signal: from.signal }),
  };
}

/** How many are kept alive, so that they keep their identity. */
const MOST_HELD = 64;

/** The errors of one coordinator in this JavaScript thread: the same bytes give the same value. */
export class ErrorsHere {
  readonly #native: NativeAttachment;
  #held: Map<string, Carried> | undefined; // by id, the oldest first

  #isExpected: (error: unknown) => boolean = () => false;

  constructor(native: NativeAttachment) {
    this.#native = native;
  }

  /** Keeps the value of an error that this thread has reported: a record gives this object. */
  hold(carried: Carried): void {
    this.#held ??= new Map();
    this.#held.delete(carried.id);
    this.#held.set(carried.id, carried);
    if (this.#held.size <= MOST_HELD) return;
    for (const oldest of this.#held.keys()) {
      this.#held.delete(oldest);
      break;
    }
  }

  /**
   * A stop is on its way, and such an error of a thread is an echo of it, before it has come, too.
   */
  expect(isExpected: (error: unknown) => boolean): void {
    this.#isExpected = isExpected;
  }

  isExpected(error: unknown): boolean {
    return this.#isExpected(error);
  }

  forget(): void {
    this.#held?.clear();
  }

  /** The value of an encoded error: the same value each time, also if it is decoded again. */
  of(bytes: Uint8Array): Carried {
    const carried = decode(bytes);
    this.hold(carried);
    return carried;
  }

  /** The value of an encoded error that the program is given now: it was not lost. */
  give(bytes: Uint8Array): unknown {
    const { id, value } = this.of(bytes);
    binding().giveError(id);
    return value;
  }

  /** `isGiven`: whether the program is given the record, and with it the errors. */
  record(isGiven = true): StopRecord | undefined {
    const native = this.#native.record();
    return native === null ? undefined : this.toRecord(native, isGiven);
  }

  toRecord(record: NativeRecord, isGiven: boolean): StopRecord {
    return {
      id: record.id,
      kind: STOP_KINDS[record.kind] ?? 'plain',
      requestedAt: new Date(record.requester.at),
      requester: toRequester(record.requester),
      suppressed: this.suppressed(isGiven),
      suppressedCount: this.#native.suppressedCount(),
      ...(record.error !== null && { error: this.#value(record.error, isGiven) }),
    };
  }

  suppressed(isGiven: boolean): SuppressedError[] {
    return this.#native.suppressed().map(({ error, requester }) => ({
      error: this.#value(error, isGiven),
      requester: toRequester(requester),
      at: new Date(requester.at),
    }));
  }

  #value(bytes: Uint8Array, isGiven: boolean): unknown {
    return isGiven ? this.give(bytes) : this.of(bytes).value;
  }
}

// Which worker of a cluster a requester is: the field `worker` (JOB:INDEX) of a stop record,
// and `host` if the worker runs on another machine.

/** The cluster's worker (JOB:INDEX) that a requester is; its `host` if that is not this one. */
type WorkerOfRequester = { worker?: string | undefined; host?: string | undefined };

type Thread = { pid: number; threadId: number; threadName: string };

/** A thread that is a worker has this name, followed by JOB:INDEX. */
const PREFIX = 'cluster/';

export const threadNameOf = (job: string, index: number): string => `${PREFIX}${job}:${index}`;

/** The size of each table below: beyond it the oldest entry is forgotten. */
const MAX_ENTRIES = 1_024;

function keep<K>(table: Map<K, WorkerOfRequester>, key: K, worker: WorkerOfRequester): void {
  table.delete(key);
  table.set(key, worker);
  const [oldest] = table.keys();
  if (table.size > MAX_ENTRIES && oldest !== undefined) table.delete(oldest);
}

/** The worker processes that this process has started, by pid. */
const processes = new Map<number, WorkerOfRequester>();

/** From now on requesters in the process `pid` of this machine are the worker `worker`. */
export function nameProcess(pid: number, worker: string): void {
  keep(processes, pid, { worker });
}

/**
 * Threads of other machines that have requested a stop, by pid, thread id and name. A pid alone is
 * not enough: a process of this machine may have the same pid.
 */
const threads = new Map<string, WorkerOfRequester>();

const keyOf = ({ pid, threadId, threadName }: Thread): string => `${pid}/${threadId}/${threadName}`;

/**
 * Keeps the host of `requester`, since the native stop record has no host. To be called before a
 * stop by `requester` is recorded here.
 */
export function nameThread(requester: Thread & WorkerOfRequester): void {
  const { worker, host } = requester;
  if (host !== undefined) keep(threads, keyOf(requester), { worker, host });
}

/** The worker that a requester is. */
function workerOf({ pid, threadId, threadName }: Thread): WorkerOfRequester {
  const known = threads.get(keyOf({ pid, threadId, threadName })) ?? processes.get(pid);
  const isWorker = threadName.startsWith(PREFIX);
  return {
    worker: isWorker ? threadName.slice(PREFIX.length) : known?.worker,
    host: known?.host,
  };
}
