/** Garbage collection on demand; the tests run with --expose-gc. */

import { setImmediate } from 'node:timers/promises';

/** Collects until `isGone`: finalizers run in turns of their own after the collection. */
export async function collectUntil(isGone: () => boolean): Promise<void> {
  for (let round = 0; round < 100; ++round) {
    globalThis.gc?.();
    await setImmediate();
    if (isGone()) return;
  }
  throw new Error('It was not collected in 100 rounds of garbage collection');
}
