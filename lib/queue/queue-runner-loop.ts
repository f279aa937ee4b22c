/** The loop of one enqueue op, in whichever JavaScript thread it runs. */

import { isOfType } from '../base/thrown-value.ts';
import { turn } from '../base/turn.ts';

const CANCELLED = ['CancelledError'];

/**
 * Calls `op` again and again until a stop, or until it fails. Throws what it fails with,
 * unless that means the end: an error of `queueClosedTypes`, or a cancellation by the
 * stop. The event loop turns before each call.
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
