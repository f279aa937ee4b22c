/**
 * One 'abort' listener per signal, shared by all listeners of the package: Node warns about a
 * leak at the eleventh listener of a signal.
 */

const listeners = new WeakMap<AbortSignal, { all: Set<() => void>; listen: () => void }>();

export function addAbortListener(signal: AbortSignal, listener: () => void): void {
  let entry = listeners.get(signal);
  if (entry === undefined) {
    const all = new Set<() => void>();
    const listen = (): void => {
      for (const each of all) each();
    };
    signal.addEventListener('abort', listen); // before the entry is kept: a polyfill may throw
    entry = { all, listen };
    listeners.set(signal, entry);
  }
  entry.all.add(listener);
}

/** When the last `listener` of a signal is removed, so is the 'abort' listener they shared. */
export function removeAbortListener(signal: AbortSignal, listener: () => void): void {
  const entry = listeners.get(signal);
  if (entry === undefined || !entry.all.delete(listener) || entry.all.size > 0) return;
  listeners.delete(signal);
  signal.removeEventListener('abort', entry.listen);
}
