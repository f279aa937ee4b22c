/** Gives queued calls to a worker or node, and knows how long functions take. */

import type { Call, Work } from '../queue/call.ts';
import type { QueuedCalls } from '../queue/call-queue.ts';
import type { Runner } from '../queue/lines/call-lines.ts';

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
