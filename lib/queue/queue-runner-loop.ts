/** The loop of one enqueue op, on the program's thread or in a Worker. */

import { isOfType } from '../base/thrown-value.ts';
import { turn } from '../base/timer.ts';

const CANCELLED = ['CancelledError'];

/**
 * Calls `op` again and again until a stop is requested or the op throws. The event loop turns
 * before each call.
 *
 * @throws (rejects) the op's error, except errors of `queueClosedTypes`, and a CancelledError
 *   after a stop: both end the loop quietly
 */
export async function runOp(
  op: () => unknown,
  stopWasRequested: () => boolean,
  queueClosedTypes: readonly string[],
): Promise<void> {
  for (;;) {
    await turn();
    if (stopWasRequested()) return;
    try {
      await op();
    } catch (error) {
      if (isOfType(error, queueClosedTypes)) return;
      if (stopWasRequested() && isOfType(error, CANCELLED)) return;
      throw error;
    }
  }
}
