/** `currentCall()`: what a function can learn about its own attempt. */

import { type CurrentCall, callsAreAsked, ownCall } from './call-store.ts';

callsAreAsked(); // whoever has this file can call `currentCall()`

/**
 * The attempt of the scheduled function, or data set function, that calls `currentCall`.
 *
 * @example
 * ```js
 * // tasks.mjs: a function of the pool that ends when it is cancelled
 * import { setTimeout } from 'node:timers/promises';
 * import { currentCall } from 'allstop/pool';
 *
 * export async function watch(path) {
 *   const { signal, attempt } = currentCall();
 *   for (let round = 1; ; round++) {
 *     currentCall().report({ path, attempt, round });
 *     await setTimeout(1_000, undefined, { signal });
 *   }
 * }
 * ```
 * @throws FailedPreconditionError: the caller was not scheduled on a cluster
 */
export function currentCall(): CurrentCall {
  return ownCall();
}
