/**
 * The doorbell: how native code gets the attention of this JavaScript thread.
 *
 * Native code notes the token of an attachment or queue that has changed, and rings, at most
 * once until the ring is served. Serving calls `check` on the listener of each noted token.
 *
 * A change that this thread makes does not ring. The code that made the change calls `drain`,
 * which serves it like a ring, so that this thread's AbortSignal has aborted when `drain` returns.
 *
 * `check` compares states. Calling it too often does no harm, and several changes may be
 * served by one ring.
 */

import { binding, onNative } from './native.ts';

type Listener = { check(): void };

/** The attachments and queues with pending waits, joins or signals, by token. */
const listeners = new Map<number, Listener | WeakRef<Listener>>();

function listenerOf(token: number): Listener | undefined {
  const listener = listeners.get(token);
  return listener instanceof WeakRef ? listener.deref() : listener;
}

function deliver(): void {
  for (const token of binding().takeDirty()) listenerOf(token)?.check();
}

/** Serves a ring. `token` is given if it is the only one that was noted. */
function serve(token?: number): void {
  if (token === undefined) deliver();
  else listenerOf(token)?.check();
}

/**
 * Serves the changes that this thread has made: call it after every native call that may have
 * changed a state. Runs abort listeners, which may call the package again.
 */
export function drain(): void {
  // Without listeners there is nothing to serve, and `takeDirty` takes a lock for which a blocked
  // worker that wakes would have to wait.
  if (listeners.size > 0) deliver();
}

/**
 * From now on `listener.check()` is called when the state behind `token` changes. Keeps
 * `listener` alive until `unlisten`.
 */
export function listen(token: number, listener: Listener): void {
  listeners.set(token, listener);
}

/** As `listen`, but does not keep the listener alive: call `forget` when it was collected. */
export function listenWeakly(token: number, listener: WeakRef<Listener>): void {
  listeners.set(token, listener);
}

/** The listener of `token` was collected. */
export function forget(token: number): void {
  if (listenerOf(token) === undefined) listeners.delete(token);
}

export function unlisten(token: number): void {
  listeners.delete(token);
}

/** Calls of `hold` without a `release`. Above 0 the event loop of this thread stays alive. */
let held = 0;

/** Keeps the event loop alive until `release` has been called as often as `hold`. */
export function hold(): void {
  if (held === 0) binding().setDoorbellReferenced(true);
  held += 1; // last: a stack overflow may throw above
}

export function release(): void {
  if (--held === 0) binding().setDoorbellReferenced(false);
}

/** Called once each, when this thread has loaded the addon. causes-of-death.ts adds a function. */
export const onFirstUse: (() => void)[] = [];

onNative({
  ring: serve,
  ready: () => {
    for (const prepare of onFirstUse) prepare();
  },
});
