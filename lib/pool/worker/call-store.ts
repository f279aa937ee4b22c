/**
 * Which attempt the code that runs belongs to. A bundle may have several copies of this file in one
 * thread: they share what it keeps, by a global symbol.
 *
 * Up to Node 22 the first use of an AsyncLocalStorage makes each `await` of the thread three to five
 * times slower. So there is none until something can ask for its call: the file with `currentCall`
 * was loaded, or attempts overlap.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { CurrentCall } from './current-call.ts';

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
