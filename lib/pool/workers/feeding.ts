/** Gives queued calls to a worker or node, and knows what it has and how long functions take. */

import { duration } from '../../coordinator/words.ts';
import type { Call, Work } from '../queue/call.ts';
import type { Runner } from '../queue/call-lines.ts';
import type { QueuedCalls } from '../queue/call-queue.ts';
import type { RunningCall } from '../queue/strategy.ts';
import type { Fate } from '../worker/messages.ts';

/** Added to each measured time for the cost of sending a call, so that no function takes 0. */
const SENDING_US = 2;

/** A worker or node. */
export interface Taker extends Runner {
  /** How many calls it has. */
  readonly running: number;
  /** Sends a call with the next `flush`. */
  add(call: Call, work: Work, expectedUs: number): void;
  flush(): void;
}

/** @returns a function that has `body` run later, once for all calls until then */
export function coalesced(later: (run: () => void) => void, body: () => void): () => void {
  let isDue = false;
  const run = (): void => {
    isDue = false;
    body();
  };
  return () => {
    if (isDue) return;
    later(run); // before the flag: a stack overflow may throw here
    isDue = true;
  };
}

type Queue = Pick<QueuedCalls<Call>, 'queued' | 'take' | 'next'>;

export class Feeding {
  readonly #queue: Queue;
  /** How long a function is expected to run that was never measured. */
  readonly #unmeasuredUs: number;
  /** By the name of the function: a moving average of its attempts, in microseconds. */
  readonly #us = new Map<string, number>();
  readonly #wake: () => void;

  /** `wake`: others may take something. */
  constructor(queue: Queue, unmeasuredUs: number, wake: () => void) {
    this.#queue = queue;
    this.#unmeasuredUs = unmeasuredUs;
    this.#wake = wake;
  }

  measure(name: string, us: number): void {
    const known = this.#us.get(name);
    const spent = us + SENDING_US;
    this.#us.set(name, known === undefined ? spent : known + (spent - known) / 8);
  }

  /**
   * Gives calls as long as `mayTake` permits; a suspect only to one that has nothing.
   *
   * @returns why no more: it may take none; nothing is queued that it may run; or a suspect is next,
   *   and it has other calls
   */
  feed(taker: Taker, mayTake: () => boolean): 'full' | 'no-work' | 'suspect' {
    while (this.#queue.queued > 0) {
      if (!mayTake()) return 'full';
      if (taker.running > 0 && this.#queue.next(taker)?.isSuspect === true) return 'suspect';
      const call = this.#queue.take(taker);
      if (call === undefined) break;
      if (call.isSuspect) this.#wake(); // what is behind it is for others
      const { work } = call;
      taker.add(call, work, this.#us.get(work.name) ?? this.#unmeasuredUs);
    }
    return 'no-work';
  }
}

// The calls that were sent to one worker or node and have not ended, in the order of sending.

export type Sent = {
  readonly call: Call;
  /** How long its function is expected to run, in microseconds. */
  readonly expectedUs: number;
  /** Date.now() when it was sent. */
  readonly sentAt: number;
};

/**
 * Whether the arguments are at the worker alone, since they were moved there. (Packed ones came from
 * a coordinator on NATS, which has a copy of them.)
 */
export function isOnlyHere({ isMoved, work }: Call): boolean {
  return isMoved && !(work.args instanceof Uint8Array);
}

export class SentCalls<S extends Sent = Sent> {
  readonly #sent = new Map<number, S>();
  #expectedUs = 0;

  get size(): number {
    return this.#sent.size;
  }

  /** How long all calls here are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#expectedUs;
  }

  /** The one that was sent first. */
  get first(): S | undefined {
    return this.#sent.values().next().value;
  }

  get({ id }: Pick<Call, 'id'>): S | undefined {
    return this.#sent.get(id);
  }

  add(sent: S): void {
    this.#sent.set(sent.call.id, sent);
    this.#expectedUs += sent.expectedUs;
  }

  /** @returns undefined if no such call is here: it was recalled, or has ended before */
  remove(id: number): S | undefined {
    const sent = this.#sent.get(id);
    if (sent === undefined) return undefined;
    this.#sent.delete(id);
    // Set to 0 when no call is left: differences of rounded numbers may not reach 0 exactly.
    this.#expectedUs = this.#sent.size === 0 ? 0 : this.#expectedUs - sent.expectedUs;
    return sent;
  }

  /** Wherever the calls here are sent next, they may take longer to begin. */
  allowLonger(): void {
    for (const { call } of this.#sent.values()) call.allowLonger();
  }

  /**
   * If calls are returned in this order, they are at the head of the queue in their old order.
   */
  newestFirst(): S[] {
    return [...this.#sent.values()].toReversed();
  }
}

/**
 * The calls of a lost worker in the order in which they are returned. Those that ran, or may have,
 * go to the tail of the queue, the oldest first; the others to its head, the newest first: so both
 * get their old order.
 */
export function inOrderOfReturn<S extends Sent>(
  sent: SentCalls<S>,
  fateOf: (sent: S) => Fate,
): (S & { fate: Fate })[] {
  const lost = sent.newestFirst().map((each) => ({ ...each, fate: fateOf(each) }));
  const goesLast = ({ call, fate }: (typeof lost)[number]): boolean =>
    fate === 'running' || call.isSuspect;
  return [...lost.filter((each) => !goesLast(each)), ...lost.filter(goesLast).toReversed()];
}

/**
 * What the worker runs, and for how long, for `explain()`; '' if it is idle.
 *
 * @param sent - the number of calls that were sent to it and have not ended
 */
export function activityOf(calls: readonly RunningCall[], sent: number): string {
  const running = calls.map(
    ({ name, startedAt }) => `'${name}' for ${duration(Date.now() - startedAt.getTime())}`,
  );
  const more = sent - calls.length;
  if (running.length === 0) return '';
  return `: runs ${running.join(', ')}${more === 0 ? '' : `, ${more} more sent`}`;
}
