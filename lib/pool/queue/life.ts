/**
 * The life of a call in the queue: where it is, and how it has settled. `next` is the only way from
 * one phase to another.
 *
 * 1. A call settles once: `outcome` is there from then on. A call in flight may settle before its
 *    attempt ends, by a deadline, a signal or another worker; it stays in flight until the attempt has
 *    ended.
 * 2. What is out stays out. Without an outcome it was refused: nobody has its value.
 */

/** What a call settles with. */
export type Outcome = {
  readonly state: 'ready' | 'failed' | 'cancelled';
  readonly value: unknown;
  /** It was stored before, or the store has failed: the function was not run. */
  readonly isKept?: boolean;
};

/**
 * Is told how a call has settled. Only the first call has an effect.
 *
 * @returns whether this was the first call
 */
export type Settle = (state: Outcome['state'], value: unknown) => boolean;

/** Hears of a call that waits for room. One of both is called, once. */
export type RoomWaiter = {
  entered(): void;
  /** It is out. */
  refused(error: unknown): void;
};

export type Life =
  | { readonly at: 'new' }
  /** For room. */
  | { readonly at: 'waiting'; readonly waiter: RoomWaiter }
  /** For its arguments, or a stored result. */
  | { readonly at: 'held' }
  | { readonly at: 'queued' }
  | { readonly at: 'in-flight'; readonly outcome?: Outcome }
  /** It has failed, and is queued again later: by `timer`. */
  | { readonly at: 'delayed'; readonly timer: { clear(): void } | undefined }
  | { readonly at: 'out'; readonly outcome: Outcome }
  /** That was told: from now on the value is its caller's alone. */
  | { readonly at: 'out'; readonly isTold: true }
  | { readonly at: 'out'; readonly refusal: unknown };

export type Place = Life['at'];

const MAY_FOLLOW: Readonly<Record<Place, readonly Place[]>> = {
  // On a node, whose coordinator has the queue, a call is in flight from the start.
  new: ['waiting', 'held', 'queued', 'in-flight', 'out'],
  waiting: ['new', 'held', 'queued', 'out'],
  held: ['queued', 'out'],
  queued: ['in-flight', 'out'],
  'in-flight': ['in-flight', 'queued', 'delayed', 'out'],
  delayed: ['queued', 'out'],
  out: [],
};

export const outcomeOf = (life: Life): Outcome | undefined =>
  'outcome' in life ? life.outcome : undefined;

/** A call that has settled. */
const SETTLED: readonly Place[] = ['in-flight', 'out'];

/** @returns the phase that follows: `to`, with the outcome that the call had before */
export function next(from: Life, to: Life): Life {
  const outcome = outcomeOf(from);
  const following = outcome === undefined ? MAY_FOLLOW[from.at] : SETTLED;
  if (from.at === 'out' || !following.includes(to.at)) {
    throw new Error(`A call that is ${from.at} cannot be ${to.at}`);
  }
  if (outcome === undefined) return to;
  return to.at === 'out' ? { at: 'out', outcome } : { at: 'in-flight', outcome };
}
