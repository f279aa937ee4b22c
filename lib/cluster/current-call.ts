/** `currentCall()` of a cluster, whose functions have Variables. */

import type { CurrentCall as PoolCall } from '../pool/worker/call-store.ts';
import { currentCall as currentPoolCall } from '../pool/worker/current-call.ts';
import type { Variable, VariableValue } from './variables/variable.ts';

/** The attempt of a call in which the caller runs. */
export interface CurrentCall extends PoolCall {
  /**
   * The cluster's variable of this name, which `cluster.variable` has made.
   *
   * @throws TypeError: `name` is not a string; InvalidArgumentError: no variable has this name
   */
  variable<T extends VariableValue>(name: string): Variable<T>;
}

/**
 * The attempt of the scheduled function, or data set function, that calls `currentCall`.
 *
 * @example
 * ```js
 * // tasks.mjs: a function of the pool that ends when it is cancelled
 * import { setTimeout } from 'node:timers/promises';
 * import { currentCall } from 'allstop/cluster';
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
export const currentCall = currentPoolCall as () => CurrentCall;
