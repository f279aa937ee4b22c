/**
 * Which attempt the code that runs belongs to. A bundle may have several copies of this file in one
 * thread: they share what it keeps, by a global symbol.
 *
 * Up to Node 22 the first use of an AsyncLocalStorage makes each `await` of the thread three to five
 * times slower. So there is none until something can ask for its call: the file with `currentCall`
 * was loaded, or attempts overlap.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { FailedPreconditionError } from '../../errors/errors.ts';
import type { SharedVariable, VariableValue } from './variables.ts';

/** The attempt of a call in which the caller runs. */
export type CurrentCall = {
  /**
   * Aborts when the function is cancelled or times out, another function has failed, or the cluster
   * stops.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when the worker was asked to end while the function runs: by SIGTERM of a worker process
   * or of an `allstop worker`, `close`, `resize` or recycling. The function may save its state, or go
   * on: the call gets its result.
   */
  readonly leaving: AbortSignal;
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
  variable<T extends VariableValue>(name: string): SharedVariable<T>;
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

type Shared = {
  readonly storage: AsyncLocalStorage<CurrentCall>;
  canBeAsked: boolean;
  /** The attempt that has begun without the storage, until it ends; there is one at most. */
  only: CurrentCall | undefined;
};

const SHARED: unique symbol = Symbol.for('allstop:current-call');
const global = globalThis as { [SHARED]?: Shared };
if (global[SHARED] === undefined) {
  const value: Shared = { storage: new AsyncLocalStorage(), canBeAsked: false, only: undefined };
  Object.defineProperty(globalThis, SHARED, { value }); // not enumerable: programs copy globals
}
const shared = global[SHARED] as Shared;

/** From now on attempts of this thread may be asked for, or overlap. */
export function callsAreAsked(): void {
  shared.canBeAsked = true;
}

export function runAsCall<T>(call: CurrentCall, body: () => T): T {
  if (shared.canBeAsked) return shared.storage.run(call, body);
  shared.only = call;
  return body();
}

/** The attempt is over. */
export function callHasEnded(call: CurrentCall): void {
  if (shared.only === call) shared.only = undefined;
}

/** The attempt in which the caller runs; undefined outside scheduled functions. */
export const callOfCaller = (): CurrentCall | undefined => shared.storage.getStore() ?? shared.only;

/** @throws FailedPreconditionError: there is none */
export function ownCall(): CurrentCall {
  const call = callOfCaller();
  if (call !== undefined) return call;
  throw new FailedPreconditionError(
    'currentCall() was called outside a function that a pool or a cluster has called',
  );
}
