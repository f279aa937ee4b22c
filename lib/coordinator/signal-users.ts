/**
 * Who uses an abort signal that the program has got: so that a signal which nothing uses does
 * not live as long as whatever could still abort it.
 */

import { getEventListeners } from 'node:events';
import { define } from '../base/define.ts';

/** Bun and Deno do not tell which signals `AbortSignal.any` has made of one. */
const canTell = process.versions['bun'] === undefined && process.versions['deno'] === undefined;

/** The signals that `AbortSignal.any` has made of this one. Node keeps them under a symbol. */
function followersOf(signal: AbortSignal): Iterable<WeakRef<AbortSignal>> {
  const symbols = Object.getOwnPropertySymbols(signal);
  const key = symbols.find(({ description }) => description === 'kDependantSignals');
  const bySymbol = signal as unknown as Record<symbol, Iterable<WeakRef<AbortSignal>> | undefined>;
  return (key && bySymbol[key]) ?? [];
}

/** Whether an abort would be noticed by a listener, or by a signal that follows this one. */
export function isHeard(signal: AbortSignal): boolean {
  if (!canTell || getEventListeners(signal, 'abort').length > 0) return true;
  return [...followersOf(signal)].some((follower) => follower.deref() !== undefined);
}

/**
 * Calls `onUse` once, when the program next does with the signal what could begin to use it:
 * adds a listener, or looks whether it is aborted, as `AbortSignal.any` does.
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
