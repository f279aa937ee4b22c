/**
 * AbortSignals, those of polyfills too: their listeners, and why one has aborted. A polyfill may throw
 * where a wait begins, and that call throws; what it throws later strands no wait.
 */

import events from 'node:events';
import { isNode } from './builtins.ts';
import { attempt, define, fieldOf } from './thrown-value.ts';

/** For polyfills, which have neither `reason` nor `throwIfAborted`. */
const made = new WeakMap<AbortSignal, DOMException>();

/** The reason of a signal that has aborted: an AbortError, always the same, if it has none. Without a signal: undefined. */
export function reasonOfAbort(signal: AbortSignal | undefined): unknown {
  if (signal === undefined) return undefined;
  const reason = fieldOf(signal, 'reason');
  if (reason !== undefined) return reason;
  let error = made.get(signal);
  if (error === undefined) {
    error = new DOMException('This operation was aborted', 'AbortError');
    made.set(signal, error);
  }
  return error;
}

/** Whether the signal of a wait that has begun has aborted. */
export function hasAborted(signal: AbortSignal | undefined): boolean {
  return signal !== undefined && Boolean(fieldOf(signal, 'aborted'));
}

/** As the signal's own method. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw reasonOfAbort(signal);
}

/**
 * One 'abort' listener per signal, shared by all listeners of the package: Node warns about a
 * leak at the eleventh listener of a signal. It is called although another listener calls
 * `stopImmediatePropagation()`.
 */
const listeners = new WeakMap<AbortSignal, { all: Set<() => void>; stop: () => void }>();

/** @returns what removes the listener */
function listen(signal: AbortSignal, listener: () => void): () => void {
  // `addAbortListener` calls the listener of a signal that has aborted before, which callers have
  // seen to, and a polyfill's signal does not know the option by which it resists.
  if (signal instanceof AbortSignal && !signal.aborted) {
    const added = events.addAbortListener(signal, listener);
    return () => added[Symbol.dispose]();
  }
  signal.addEventListener('abort', listener);
  return () => signal.removeEventListener('abort', listener);
}

export function addAbortListener(signal: AbortSignal, listener: () => void): void {
  let entry = listeners.get(signal);
  if (entry === undefined) {
    const all = new Set<() => void>();
    const stop = listen(signal, () => {
      for (const each of all) each();
    });
    entry = { all, stop }; // kept after the listener is added: a polyfill may throw
    listeners.set(signal, entry);
  }
  entry.all.add(listener);
}

/** When the last `listener` of a signal is removed, so is the 'abort' listener they shared. */
export function removeAbortListener(signal: AbortSignal, listener: () => void): void {
  const entry = listeners.get(signal);
  if (entry === undefined || !entry.all.delete(listener) || entry.all.size > 0) return;
  listeners.delete(signal);
  attempt(entry.stop);
}

/**
 * Spares the program Node's warning about many listeners of `signal`. The signals of jsdom, which
 * test runners put in the place of Node's, are refused by Node, and have no such limit.
 */
export function allowManyListeners(signal: AbortSignal): void {
  try {
    events.setMaxListeners(0, signal);
  } catch {
    // It warns of nothing.
  }
}

// Finds out whether anything uses an AbortSignal that the program has got: a signal that nothing
// uses need not live as long as the threads and links that could abort it.

/** The signals that `AbortSignal.any` has made of `signal`. Node keeps them under a symbol. */
function followersOf(signal: AbortSignal): Iterable<WeakRef<AbortSignal>> {
  const symbols = Object.getOwnPropertySymbols(signal);
  const key = symbols.find(({ description }) => description === 'kDependantSignals');
  const bySymbol = signal as unknown as Record<symbol, Iterable<WeakRef<AbortSignal>> | undefined>;
  return (key && bySymbol[key]) ?? [];
}

/** Whether `signal` has listeners. Those of jsdom's signals are not known: true. */
const hasListeners = (signal: AbortSignal): boolean =>
  attempt(() => events.getEventListeners(signal, 'abort').length > 0) ?? true;

/** Whether `signal` has listeners, or signals that `AbortSignal.any` has made of it. */
export function isHeard(signal: AbortSignal): boolean {
  // Bun and Deno do not tell which signals `AbortSignal.any` has made of one.
  if (!isNode || hasListeners(signal)) return true;
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
