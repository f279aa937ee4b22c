/** The threads that are still alive after the grace period of a join, and what is said of them. */

import type { Straggler } from '../../errors/errors.ts';
import { latenciesOf, timeline } from '../../events/timeline.ts';
import type { NativeThread } from '../../native/binding.ts';
import type { Attachment } from '../attachment.ts';
import { waitState } from '../diagnosis/wait-state.ts';
import { printable, warn } from '../words.ts';
import { toThreadInfo } from './watch.ts';

export function toStraggler(native: NativeThread, stopAgeMs: number): Straggler {
  const { name, kind, threadId } = toThreadInfo(native);
  const straggler: Straggler = { name, kind, runningForMs: Math.round(stopAgeMs) };
  if (threadId !== undefined) straggler.threadId = threadId;
  const state = native.hasBegun ? stateOf(native, threadId) : NOT_BEGUN;
  if (state !== undefined) straggler.waitState = state;
  return straggler;
}

/** Of a hook, which waits for those that were registered after it. */
const NOT_BEGUN = 'has not begun';

const stateOf = ({ isOsThread }: NativeThread, threadId: number | undefined): string | undefined =>
  isOsThread && threadId !== undefined ? waitState(threadId) : undefined;

/** The threads that joins have left behind, in any JavaScript thread, and that have not ended. */
export function leftBehind(attachment: Attachment): Straggler[] {
  return attachment.native
    .leftBehindThreads()
    .map((thread) => toStraggler(thread, thread.stopAgeMs));
}

/** What TensorFlow logs, or throws, when a join ends before the threads do. */
export function stragglersMessage(stragglers: readonly NativeThread[]): string {
  const names = stragglers
    .map(({ name, hasBegun }) => printable(name) + (hasBegun ? '' : ` (${NOT_BEGUN})`))
    .join(' ');
  return `Coordinator stopped with threads still running: ${names}`;
}

/** For a join that leaves threads behind, and does not throw an error that names them. */
export function warnOfStragglers(
  attachment: Attachment,
  stragglers: readonly NativeThread[],
): void {
  warn(
    'StragglersWarning',
    'ALLSTOP_STRAGGLERS',
    stragglersMessage(stragglers),
    `leftBehind and explain() of the coordinator '${attachment.native.name}' list them until they end.`,
  );
}

/** `join({ warnSeenAfterMs })`: warns of the threads that took longer than `limitMs` from the newest stop until they saw it. */
export function warnOfSlowThreads(attachment: Attachment, limitMs: number): void {
  const slow = latenciesOf(timeline(attachment).events).flatMap(({ thread, seenMs }) =>
    seenMs !== undefined && seenMs > limitMs ? `${thread} (${seenMs.toFixed(0)} ms)` : [],
  );
  if (slow.length === 0) return;
  warn(
    'SlowStopWarning',
    'ALLSTOP_SLOW_STOP',
    `Threads of the coordinator '${attachment.native.name}' saw the stop later than after ${limitMs} ms: ${slow.join(', ')}`,
    'Have them call shouldStop() more often.',
  );
}
