/** Garbage collection on demand; the tests run with --expose-gc. */

import { setImmediate } from 'node:timers/promises';

/**
 * Collects garbage until `isGone`. Finalizers run in later turns of the event loop, so it repeats.
 */
export async function collectUntil(isGone: () => boolean): Promise<void> {
  for (let round = 0; round < 100; ++round) {
    globalThis.gc?.();
    await setImmediate();
    if (isGone()) return;
  }
  throw new Error('It was not collected in 100 rounds of garbage collection');
}
