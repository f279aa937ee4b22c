/**
 * How native code gets the attention of this JavaScript thread.
 *
 * It notes the token of what has news and rings (at most once until answered); then
 * `check` is called on whoever listens to that token. What this thread does to a
 * coordinator itself does not ring: it calls `drain` right after, which does the same, so
 * that its own signal has aborted when the call returns. `check` compares state, not
 * events: every step may be repeated and nothing is lost when several changes arrive as
 * one.
 */

import { binding, onNative } from './native.ts';

/** By token: those with pending waits, joins, signals. */
const listeners = new Map<number, { check(): void }>();

function deliver(): void {
  for (const token of binding().takeDirty()) listeners.get(token)?.check();
}

/** `token`: of the only one that has news. */
function answer(token?: number): void {
  if (token === undefined) deliver();
  else listeners.get(token)?.check();
}

/**
 * Delivers the news that there is. After any call that may have changed state.
 * Abort listeners run in here, and may call in again.
 */
export function drain(): void {
  if (listeners.size > 0) deliver(); // else it would be in the way of a blocked worker that wakes
}

/** From now on `listener` is told of news of what has this token, and kept alive. */
export function listen(token: number, listener: { check(): void }): void {
  listeners.set(token, listener);
}

export function unlisten(token: number): void {
  listeners.delete(token);
}

/** Calls of `hold`; while there are any, the event loop of this thread stays alive. */
let held = 0;

/** Keeps the event loop alive until as many calls of `release`. */
export function hold(): void {
  if (held++ === 0) binding().setDoorbellReferenced(true);
}

export function release(): void {
  if (--held === 0) binding().setDoorbellReferenced(false);
}

/** What to do once, when this thread first uses the package. Set by threads.ts. */
export const onFirstUse: (() => void)[] = [];

onNative({
  ring: answer,
  ready: () => {
    for (const prepare of onFirstUse) prepare();
  },
});
