/**
 * Any number of listeners on a signal of the caller's, as one: Node warns of a
 * leak at the eleventh.
 */

const listeners = new WeakMap<AbortSignal, { all: Set<() => void>; listen: () => void }>();

export function addAbortListener(signal: AbortSignal, listener: () => void): void {
  let entry = listeners.get(signal);
  if (entry === undefined) {
    const all = new Set<() => void>();
    const listen = (): void => {
      for (const each of all) each();
    };
    signal.addEventListener('abort', listen); // first, as another's signal may throw here
    entry = { all, listen };
    listeners.set(signal, entry);
  }
  entry.all.add(listener);
}

/** With the last listener our own goes, too. */
export function removeAbortListener(signal: AbortSignal, listener: () => void): void {
  const entry = listeners.get(signal);
  if (entry === undefined || !entry.all.delete(listener) || entry.all.size > 0) return;
  listeners.delete(signal);
  signal.removeEventListener('abort', entry.listen);
}
