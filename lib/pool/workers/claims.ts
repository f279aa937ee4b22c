/** The coordinator's end of the claims (protocol.ts) that it shares with one worker. */

import { CANCELLED, ENDED, type Fate } from '../worker/protocol.ts';
import type { Sent } from './sent-closures.ts';

export type SentToWorker = Sent & {
  /** The index of its claim. */
  readonly claim: number;
};

export class Claims {
  readonly #words: Int32Array;
  /** A process sees no claims: each closure that was sent there counts as running. */
  readonly #isShared: boolean;
  readonly #free: number[];

  constructor(words: Int32Array, isShared: boolean) {
    this.#words = words;
    this.#isShared = isShared;
    this.#free = Array.from(words.keys()).toReversed();
  }

  get hasFree(): boolean {
    return this.#free.length > 0;
  }

  /** @returns the index of the claim that the closure `id` has from now on */
  take(id: number): number {
    const claim = this.#free.pop() as number;
    Atomics.store(this.#words, claim, id);
    return claim;
  }

  release(claim: number): void {
    this.#free.push(claim);
  }

  /** @returns whether the closure was recalled: the worker has not begun it, and never will */
  recall(claim: number, id: number): boolean {
    return this.#isShared && Atomics.compareExchange(this.#words, claim, id, 0) === id;
  }

  /** Whether the worker has begun the closure, and has ended it. */
  fateOf(claim: number, id: number): Fate {
    if (!this.#isShared) return 'running';
    const word = Atomics.load(this.#words, claim);
    if (word === id) return 'sent';
    return word === ENDED ? 'ended' : 'running';
  }

  /** Lets `shouldStop()` of the closure, if it has begun, see that it is cancelled. */
  cancel(claim: number, id: number): void {
    Atomics.compareExchange(this.#words, claim, -id, CANCELLED);
  }
}
