/**
 * Finds out whether anything uses an AbortSignal that the program has got: a signal that nothing
 * uses need not live as long as the threads and links that could abort it.
 */

import { getEventListeners } from 'node:events';
import { define } from '../base/thrown-value.ts';

/** Bun and Deno do not tell which signals `AbortSignal.any` has made of one. */
const canTell = process.versions['bun'] === undefined && process.versions['deno'] === undefined;

/** The signals that `AbortSignal.any` has made of `signal`. Node keeps them under a symbol. */
function followersOf(signal: AbortSignal): Iterable<WeakRef<AbortSignal>> {
  const symbols = Object.getOwnPropertySymbols(signal);
  const key = symbols.find(({ description }) => description === 'kDependantSignals');
  const bySymbol = signal as unknown as Record<symbol, Iterable<WeakRef<AbortSignal>> | undefined>;
  return (key && bySymbol[key]) ?? [];
}

/** Whether `signal` has listeners. Those of jsdom's signals are not known: true. */
function hasListeners(signal: AbortSignal): boolean {
  try {
    return getEventListeners(signal, 'abort').length > 0;
  } catch {
    return true;
  }
}

/** Whether `signal` has listeners, or signals that `AbortSignal.any` has made of it. */
export function isHeard(signal: AbortSignal): boolean {
  if (!canTell || hasListeners(signal)) return true;
  return [...followersOf(signal)].some((follower) => follower.deref() !== undefined);
}

const ON_USE = Symbol('allstop:onUse');
type Watched = AbortSignal & { [ON_USE]?: () => void };

/**
 * The prototype of a signal that nothing uses. (Not properties of the signal itself, of which each
 * server's request would make anew.)
 */
const watched: object = Object.create(AbortSignal.prototype, {
  addEventListener: {
    value(this: Watched, ...args: Parameters<AbortSignal['addEventListener']>): void {
      use(this);
      this.addEventListener(...args);
    },
  },
  onabort: {
    get: () => null, // no handler is set
    set(this: Watched, listener: AbortSignal['onabort']) {
      use(this);
      Reflect.set(this, 'onabort', listener);
    },
  },
  aborted: {
    get(this: Watched): boolean {
      use(this);
      return this.aborted;
    },
  },
});

function use(signal: Watched): void {
  Object.setPrototypeOf(signal, AbortSignal.prototype);
  const onUse = signal[ON_USE];
  Reflect.deleteProperty(signal, ON_USE);
  onUse?.();
}

/**
 * Calls `onUse` once, when the program next adds a listener to `signal`, or reads `aborted`, as
 * `AbortSignal.any` does: from then on the program may be using the signal. The signal keeps `onUse`.
 */
export function onNextUse(signal: AbortSignal, onUse: () => void): void {
  define(signal, ON_USE, onUse, false);
  Object.setPrototypeOf(signal, watched);
}
