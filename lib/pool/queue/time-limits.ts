/** Deadline and signal of a call, before and after it is queued. */

import { addAbortListener, reasonOfAbort, removeAbortListener } from '../../base/abort.ts';
import { rejection, withCallersFrames } from '../../base/callers-frames.ts';
import { Timer, within } from '../../base/timer.ts';
import { DeadlineExceededError } from '../../errors/errors.ts';

export type Limits = {
  readonly signal: AbortSignal | undefined;
  /** As the caller gave it, for messages. */
  readonly timeoutMs: number;
  /** How much of `timeoutMs` is left. */
  readonly leftMs: number;
};

/** `why`: continues the sentence. */
export const deadlineExceeded = (name: string, timeoutMs: number, why = ''): Error =>
  withCallersFrames(
    new DeadlineExceededError(
      `The function '${name}' did not end within ${timeoutMs} ms (options.timeoutMs)${why}`,
    ),
  );

/** The error of a call whose function has run for its `runTimeoutMs`. */
export const overdue = (name: string, runTimeoutMs: number): Error =>
  withCallersFrames(
    new DeadlineExceededError(
      `The function '${name}' ran for more than ${runTimeoutMs} ms (options.runTimeoutMs)`,
    ),
  );

export const UNLIMITED: Limits = {
  signal: undefined,
  timeoutMs: Number.POSITIVE_INFINITY,
  leftMs: Number.POSITIVE_INFINITY,
};

/**
 * Calls `onLate` when `leftMs` have passed, and `onAbort` when the signal is aborted, each at most
 * once. The caller must check whether `signal` has aborted already.
 *
 * @returns a function that removes the timer and the listener
 */
export function watch(
  { signal, leftMs }: Limits,
  onLate: () => void,
  onAbort: (reason: unknown) => void,
): () => void {
  const timer = new Timer(leftMs, onLate);
  const aborted = (): void => onAbort(reasonOfAbort(signal));
  if (signal !== undefined) addAbortListener(signal, aborted);
  return () => {
    timer.clear();
    if (signal !== undefined) removeAbortListener(signal, aborted);
  };
}

/** Settles as `promise` does, or rejects when the deadline passes or the signal is aborted. */
export function inTime<T>(promise: Promise<T>, limits: Limits, tooLate: () => Error): Promise<T> {
  if (limits === UNLIMITED) return promise;
  const onLate = (): Promise<never> => rejection(tooLate());
  return within<T, never>(limits.leftMs, promise, onLate, limits.signal);
}
