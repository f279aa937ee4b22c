/**
 * The spine of events: what happens to coordinators and threads is told once (channels.ts). The
 * diagnostics channels and the log of NODE_DEBUG subscribe. An event is made only if somebody hears
 * it.
 */

import { debuglog, format } from 'node:util';
import { workerThreads } from '../base/builtins.ts';
import { printable } from '../base/thrown-value.ts';
import {
  type NativeAttachment,
  type NativeRecord,
  type NativeThread,
  type NativeTimeline,
  type RequesterOptions,
  STOP_KINDS,
  type StopOutcome,
  THREAD_KINDS,
  type ThreadKind,
  TIMELINE_TYPES,
} from '../native/binding.ts';
import { threadName as ownThreadName } from '../native/native.ts';
import type { ErrorsHere, StopRecord } from '../record/stop-record.ts';

const write = debuglog('allstop');

/**
 * The log of `NODE_DEBUG=allstop`. No text of the program, such as a name, begins a line: the lines of
 * an error after its first are indented. Throws what the error's own inspect method throws.
 */
export const log: { (message: string, ...parts: unknown[]): void; readonly enabled: boolean } =
  Object.defineProperty(
    (message: string, ...parts: unknown[]): void => {
      if (write.enabled) write(message, ...parts.map(safe));
    },
    'enabled',
    { get: () => write.enabled },
  ) as typeof log;

function safe(part: unknown): unknown {
  if (typeof part === 'number') return part;
  if (typeof part === 'string') return printable(part);
  return format('%s', part).split('\n').map(printable).join('\n  ');
}

/** A registered thread, or one of the last 64 that have ended. */
export type ThreadInfo = {
  /** The name with which the thread was registered. */
  name: string;
  /**
   * What the thread is:
   *
   * - 'worker': a Worker
   * - 'process': a child process
   * - 'task': a function of `start`, or a registered promise
   * - 'looper': a LooperThread
   * - 'native': a thread of C, C++ or Rust
   * - 'hook': a function of `onStop`
   * - 'custom': another object with a `join()`
   */
  kind: ThreadKind;
  /** Whether it has started and not ended. */
  alive: boolean;
  /** Set on a hook that has to run for the stop, and whose turn has not come. */
  hasBegun?: false;
  /** The option `daemon`. Left out if nothing was said. */
  daemon?: boolean;
  /** The threadId of a worker, the OS thread id of a native thread, or the pid of a process. */
  threadId?: number;
  /** When it was started or, if it has not been, registered. */
  startedAt: Date;
  /** When it ended. Left out while it has not. */
  endedAt?: Date;
  /** Set if nobody saw this thread end: the JavaScript thread that watched it had ended before. */
  unobserved?: true;
};

export function toThreadInfo(native: Omit<NativeThread, 'id' | 'isOsThread'>): ThreadInfo {
  const info: ThreadInfo = {
    name: native.name,
    kind: THREAD_KINDS[native.kind] ?? 'custom',
    alive: native.alive,
    startedAt: new Date(native.startedAt),
  };
  if (native.threadId !== undefined) info.threadId = native.threadId;
  if (native.endedAt !== 0) info.endedAt = new Date(native.endedAt);
  if (native.daemon !== undefined) info.daemon = native.daemon;
  if (!native.hasBegun) info.hasBegun = false;
  if (native.unobserved) info.unobserved = true;
  return info;
}

/** What each message on a channel of ours begins with. */
export type CoordinatorMessage = {
  /** The name of the coordinator. */
  coordinator: string;
  /** Which coordinator it is, where several have one name: unique in the process. */
  coordinatorId: string;
};

/** What this needs of an Attachment. */
export type Watched = {
  readonly native: NativeAttachment;
  setTeller(teller: { tell(): void } | undefined): number;
  readonly errors: ErrorsHere;
};

type NativeEvent = NativeTimeline['events'][number];

/** One event. What takes time to find out is a method. */
export class CoordinatorEvent {
  readonly about: CoordinatorMessage;
  readonly type: (typeof TIMELINE_TYPES)[number] | undefined;
  readonly native: NativeEvent;
  readonly #watched: Watched;
  /** Milliseconds since 1970. */
  readonly #at: number;

  constructor(about: CoordinatorMessage, watched: Watched, native: NativeEvent, startedAt: number) {
    this.about = about;
    this.type = TIMELINE_TYPES[native.type];
    this.native = native;
    this.#watched = watched;
    this.#at = startedAt + native.at;
  }

  /** The record of the stop that the event is about; undefined if that was cleared since. */
  nativeRecord(): NativeRecord | undefined {
    const record = this.#watched.native.record();
    return record?.generation === this.native.generation ? record : undefined;
  }

  /** As `nativeRecord`. The errors in it do not count as given. */
  record(): StopRecord | undefined {
    const record = this.nativeRecord();
    return record && this.#watched.errors.toRecord(record, false);
  }

  /** The thread that the event is about. */
  thread(): ThreadInfo {
    const { name, kind, unobserved, threadId, threadStartedAt: startedAt } = this.native;
    const alive = this.type !== 'ended';
    const endedAt = alive ? 0 : this.#at;
    const known = { name, kind, unobserved, alive, startedAt, endedAt, hasBegun: true };
    return toThreadInfo(threadId === undefined ? known : { ...known, threadId });
  }

  /** The time from the stop to the event; 0 if the stop was cleared meanwhile. */
  stopAgeMs(): number {
    const stop = this.#watched.native.stop();
    return stop === null ? 0 : Math.max(0, Math.round(stop.ageMs - (Date.now() - this.#at)));
  }
}

export type Subscriber = {
  /** Whether it has a use for events now: a channel without subscribers of its own has none. */
  hears(): boolean;
  hear(event: CoordinatorEvent): void;
};

// With `NODE_DEBUG=allstop`: a line on standard error for what happens to coordinators and their threads,
// and for each error that a coordinator records.

/** The deed of a thread, by the event. */
const DEEDS_OF_THREADS: { [type in NonNullable<CoordinatorEvent['type']>]?: string } = {
  'thread-started': 'has started',
  ended: 'has ended',
  straggler: 'was left behind: it is alive after the grace period',
};

/** Writes a line for each event of a coordinator. */
export const inLog: Subscriber = {
  hears: () => log.enabled && workerThreads().isMainThread,
  hear(event) {
    const { type, native } = event;
    const { coordinator } = event.about;
    const deed = type && DEEDS_OF_THREADS[type];
    if (deed !== undefined) {
      const kind = THREAD_KINDS[native.kind] ?? 'custom';
      const which = native.threadId === undefined ? kind : `${kind} ${native.threadId}`;
      log("coordinator '%s': the thread '%s' (%s) %s", coordinator, native.name, which, deed);
    } else if (type === 'stop-requested') {
      const record = event.nativeRecord();
      if (record === undefined) log("coordinator '%s': stopped, and cleared since", coordinator);
      else {
        const { threadName, threadId, via } = record.requester;
        const by = "coordinator '%s': stopped (%s) by the thread '%s' (%d), via '%s'";
        log(by, coordinator, STOP_KINDS[record.kind], threadName, threadId, via);
      }
    } else if (type === 'stop-cleared') {
      log("coordinator '%s': the stop was cleared", coordinator);
    } else if (type === 'queue-full') {
      log("queue '%s': full, a producer waits", native.name);
    }
  },
};

/** What a coordinator does with an error that was reported to it. */
const DEEDS: { [outcome in StopOutcome]?: string } = {
  stopped: 'recorded',
  suppressed: 'suppressed',
  counted: 'counted',
};

/** The id of the last record that `logNativeStop` has looked at. */
const looked = new WeakMap<Watched, string>();

/** For an error that this thread has reported. */
export function logReport(
  attachment: Watched,
  outcome: StopOutcome,
  by: RequesterOptions,
  bytes: Uint8Array,
): void {
  const deed = DEEDS[outcome];
  if (!log.enabled || deed === undefined) return;
  writeError(attachment.native.name, deed, by, attachment.errors.of(bytes).value);
}

/**
 * For a stop that this thread has seen: its error, if native code has recorded it (an exception in
 * a native thread, or a deadline). All threads see the stop; the main thread writes the line.
 */
export function logNativeStop(attachment: Watched): void {
  if (!log.enabled || !workerThreads().isMainThread) return;
  const stop = attachment.native.stop();
  if (stop === null || stop.error === null || looked.get(attachment) === stop.id) return;
  looked.set(attachment, stop.id);
  const { error, requester } = attachment.native.record() ?? {};
  if (!error || requester === undefined) return;
  if (!requester.native && requester.via !== 'timeout') return;
  writeError(attachment.native.name, 'recorded', requester, attachment.errors.of(error).value);
}

function writeError(coordinator: string, deed: string, by: RequesterOptions, error: unknown): void {
  const { threadName = ownThreadName(), threadId = workerThreads().threadId, via } = by;
  const line = "coordinator '%s': %s an error of the thread '%s' (%d), via '%s':";
  const about = [coordinator, deed, threadName, threadId, via];
  try {
    log(`${line} %s`, ...about, error);
  } catch {
    log(`${line} a value that cannot be shown`, ...about); // its own inspect method has thrown
  }
}
