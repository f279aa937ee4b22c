/** Why an AbortSignal has aborted. Polyfills have neither `reason` nor `throwIfAborted`. */

const made = new WeakMap<AbortSignal, DOMException>();

/** The reason of a signal that has aborted: an AbortError, always the same, if it has none. Without a signal: undefined. */
export function reasonOfAbort(signal: AbortSignal | undefined): unknown {
  if (signal === undefined) return undefined;
  const { reason } = signal;
  if (reason !== undefined) return reason;
  let error = made.get(signal);
  if (error === undefined) {
    error = new DOMException('This operation was aborted', 'AbortError');
    made.set(signal, error);
  }
  return error;
}

/** As the signal's own method. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw reasonOfAbort(signal);
}
