/** The warning of threads that ask too seldom: `join({ warnSeenAfterMs })`. */

import type { Attachment } from '../attachment.ts';
import { warn } from '../warning.ts';
import { latenciesOf } from './lanes.ts';
import { timeline } from './timeline.ts';

/** Warns of the threads that took longer than `limitMs` from the newest stop until they saw it. */
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
