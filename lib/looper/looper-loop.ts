/** The loop of a looper, in whichever JavaScript thread its target runs. */

import { now } from '../base/clock.ts';
import { turn } from '../base/turn.ts';
import type { Attachment } from '../coordinator/attachment.ts';
import { LooperSchedule, type LooperTimes } from './looper-schedule.ts';

/**
 * Calls `run` when it is due, until a stop: one after generation `since`, even if it is
 * cleared at once. The event loop turns between two runs.
 */
export async function loop(
  attachment: Attachment,
  since: number,
  times: LooperTimes,
  run: () => unknown,
): Promise<void> {
  const schedule = new LooperSchedule(times);
  const stopsWithin = (ms: number): Promise<boolean> =>
    attachment.waitForStop(ms, undefined, since);
  for (let isFirst = true; ; isFirst = false) {
    const left = schedule.next(now()) - now();
    if (left <= 0 && !isFirst) await turn();
    if (await stopsWithin(Math.max(0, left))) return;
    await run();
  }
}
