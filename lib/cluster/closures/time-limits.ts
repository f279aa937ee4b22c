/** The deadline of a call and its caller's signal, before it is in line and after. */

import { addAbortListener, removeAbortListener } from '../../base/abort-listeners.ts';
import { Timer, within } from '../../base/timer.ts';
import { DeadlineExceededError } from '../../errors/errors.ts';
import type { Call, Closure, ClosureOutcome } from './closure.ts';

/** What a call may take. */
export type Limits = {
  readonly signal: AbortSignal | undefined;
  /** As the caller has said it: errors name it. */
  readonly timeoutMs: number;
  /** What is left of it. */
  readonly leftMs: number;
};

export const deadlineExceeded = (name: string, timeoutMs: number): Error =>
  new DeadlineExceededError(`The function '${name}' had not ended after ${timeoutMs} ms`);

export const areNone = ({ signal, leftMs }: Limits): boolean =>
  signal === undefined && leftMs === Number.POSITIVE_INFINITY;

/** Calls one of the two, once; returns what takes timer and listener off. */
function watch(
  { signal, leftMs }: Limits,
  onLate: () => void,
  onAbort: (reason: unknown) => void,
): () => void {
  const timer = new Timer(leftMs, onLate);
  const aborted = (): void => onAbort(signal?.reason);
  if (signal !== undefined) addAbortListener(signal, aborted);
  return () => {
    timer.clear();
    if (signal !== undefined) removeAbortListener(signal, aborted);
  };
}

/** Rejects when it is too late, whatever becomes of the promise. */
export function inTime<T>(promise: Promise<T>, limits: Limits, tooLate: () => Error): Promise<T> {
  if (areNone(limits)) return promise;
  const onLate = (): never => {
    throw tooLate();
  };
  return within(limits.leftMs, promise, onLate, limits.signal);
}

/** Has a closure come to what its limits make of it, until it is settled. */
export function limit(
  closure: Closure,
  limits: Limits,
  decide: (closure: Closure, outcome: ClosureOutcome) => void,
): void {
  if (areNone(limits)) return;
  const { name } = closure.work as Call;
  closure.onSettled = watch(
    limits,
    () => {
      decide(closure, { state: 'failed', value: deadlineExceeded(name, limits.timeoutMs) });
    },
    (reason) => decide(closure, { state: 'cancelled', value: reason }),
  );
}
