/**
 * Finds out whether anything uses an AbortSignal that the program has got: a signal that nothing
 * uses need not live as long as the threads and links that could abort it.
 */

import { getEventListeners } from 'node:events';
import { define } from '../base/define.ts';

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

/**
 * Calls `onUse` once, when the program next adds a listener to `signal`, or reads `aborted`, as
 * `AbortSignal.any` does: from then on the program may be using the signal.
 */
export function onNextUse(signal: AbortSignal, onUse: () => void): void {
  const names = ['addEventListener', 'onabort', 'aborted'] as const;
  const used = (): void => {
    for (const name of names) Reflect.deleteProperty(signal, name);
    onUse();
  };
  const addEventListener = (...args: Parameters<AbortSignal['addEventListener']>): void => {
    used();
    signal.addEventListener(...args);
  };
  define(signal, 'addEventListener', addEventListener, false);
  Object.defineProperty(signal, 'onabort', {
    configurable: true,
    get: () => null, // no handler is set: setting one calls `used`, which removes this property
    set(listener: AbortSignal['onabort']) {
      used();
      Reflect.set(signal, 'onabort', listener);
    },
  });
  Object.defineProperty(signal, 'aborted', {
    configurable: true,
    get() {
      used();
      return signal.aborted;
    },
  });
}
