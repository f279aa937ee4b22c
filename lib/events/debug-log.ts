/**
 * With `NODE_DEBUG=allstop`: a line on standard error for what happens to coordinators and their
 * threads, and for each error that a coordinator records.
 */

import { workerThreads } from '../base/builtins.ts';
import {
  type NativeAttachment,
  type RequesterOptions,
  STOP_KINDS,
  type StopOutcome,
  THREAD_KINDS,
} from '../native/binding.ts';
import { threadName as ownThreadName } from '../native/native.ts';
import { type CoordinatorEvent, log, type Subscriber } from './spine.ts';

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
const DEEDS: Record<StopOutcome, string | undefined> = {
  stopped: 'recorded',
  suppressed: 'suppressed',
  counted: 'counted',
  refused: undefined, // thrown to the caller
  echo: undefined,
  'already-stopped': undefined,
};

/** The id of the last record that `logNativeStop` has looked at. */
const looked = new WeakMap<AttachmentLike, string>();

/** What this needs of an Attachment. */
type AttachmentLike = {
  readonly native: Pick<NativeAttachment, 'name' | 'record' | 'stop'>;
  readonly errors: { of(bytes: Uint8Array): { readonly value: unknown } };
};

/** For an error that this thread has reported. */
export function logReport(
  attachment: AttachmentLike,
  outcome: StopOutcome,
  by: RequesterOptions,
  bytes: Uint8Array,
): void {
  const deed = DEEDS[outcome];
  if (!log.enabled || deed === undefined) return;
  write(attachment.native.name, deed, by, attachment.errors.of(bytes).value);
}

/**
 * For a stop that this thread has seen: its error, if native code has recorded it (an exception in
 * a native thread, or a deadline). All threads see the stop; the main thread writes the line.
 */
export function logNativeStop(attachment: AttachmentLike): void {
  if (!log.enabled || !workerThreads().isMainThread) return;
  const stop = attachment.native.stop();
  if (stop === null || stop.error === null || looked.get(attachment) === stop.id) return;
  looked.set(attachment, stop.id);
  const { error, requester } = attachment.native.record() ?? {};
  if (!error || requester === undefined) return;
  if (!requester.native && requester.via !== 'timeout') return;
  write(attachment.native.name, 'recorded', requester, attachment.errors.of(error).value);
}

function write(coordinator: string, deed: string, by: RequesterOptions, error: unknown): void {
  const { threadName = ownThreadName(), threadId = workerThreads().threadId, via } = by;
  const line = "coordinator '%s': %s an error of the thread '%s' (%d), via '%s':";
  const about = [coordinator, deed, threadName, threadId, via];
  try {
    log(`${line} %s`, ...about, error);
  } catch {
    log(`${line} a value that cannot be shown`, ...about); // its own inspect method has thrown
  }
}
