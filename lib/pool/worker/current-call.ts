/**
 * `currentCall()`: what a function can learn about its own attempt. A bundle may have several copies
 * of this file in one thread: they share the storage, by a global symbol.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Variable, VariableValue } from '../../cluster/variables/variable.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';

/** The attempt of a call in which the caller runs. */
export type CurrentCall = {
  /**
   * Aborts when the function is cancelled or times out, another function has failed, or the cluster
   * stops.
   */
  readonly signal: AbortSignal;
  /** Whether the function should end, for code that does not yield to the event loop. */
  shouldStop(): boolean;
  /** Index of the worker that runs the function, from 0. */
  readonly workerIndex: number;
  /** 1 on the first attempt, one more after each loss of a worker. */
  readonly attempt: number;
  /**
   * The cluster's variable of this name, which `cluster.variable` has made.
   *
   * @throws TypeError: `name` is not a string; InvalidArgumentError: no variable has this name
   */
  variable<T extends VariableValue>(name: string): Variable<T>;
  /**
   * Tells the caller how far the function is: `value`, which is copied, comes out of
   * `RemoteValue.progress` and goes to `onProgress`. Of values that come faster than messages go
   * (one in 10 ms) the oldest are dropped when there are more than 4,096, or 256 KiB. Does nothing
   * after the function has ended, nor in a data set function.
   *
   * @throws DataCloneError: the value cannot be cloned, or shares memory
   */
  report(value: unknown): void;
};

const SHARED: unique symbol = Symbol.for('allstop:current-call');
const shared = globalThis as { [SHARED]?: AsyncLocalStorage<CurrentCall> };
if (shared[SHARED] === undefined) {
  const value = new AsyncLocalStorage<CurrentCall>();
  Object.defineProperty(globalThis, SHARED, { value }); // not enumerable: programs copy globals
}
const calls = shared[SHARED] as AsyncLocalStorage<CurrentCall>;

export function runAsCall<T>(call: CurrentCall, body: () => T): T {
  return calls.run(call, body);
}

/** The attempt in which the caller runs; undefined outside scheduled functions. */
export const callOfCaller = (): CurrentCall | undefined => calls.getStore();

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
  const call = calls.getStore();
  if (call !== undefined) return call;
  throw new FailedPreconditionError(
    'currentCall() was called outside a function that a pool or a cluster has called',
  );
}
