/**
 * Starts workers a few at a time: hundreds of threads that start at once leave this process's main
 * thread no processor, and it has to answer others meanwhile.
 */

import { Timer } from '../../base/timer.ts';

/** A worker that has not started after this time lets the next one start: its module may wait. */
const PATIENCE_MS = 1_000;

export class StartLine<S> {
  readonly #most: number;
  readonly #start: (slot: S) => void;
  readonly #starting = new Map<S, Timer>();
  readonly #waiting = new Set<S>();
  /** Those that enter later. */
  readonly #delayed = new Map<S, Timer>();
  #isClosed = false;

  /** `most`: how many may start at the same time. */
  constructor(most: number, start: (slot: S) => void) {
    this.#most = most;
    this.#start = start;
  }

  /** Calls `start` for the slot, now or when it is its turn. */
  enter(slot: S): void {
    this.#waiting.add(slot);
    this.#advance();
  }

  /** Enters the slot after `ms` milliseconds, unless it leaves before. */
  enterLater(slot: S, ms: number): void {
    const timer = new Timer(ms, () => {
      this.#delayed.delete(slot);
      this.enter(slot);
    });
    this.#delayed.set(slot, timer);
  }

  /** The slot has started, or failed to. */
  left(slot: S): void {
    const timer = this.#starting.get(slot);
    if (timer === undefined) return;
    timer.clear();
    this.#starting.delete(slot);
    this.#advance();
  }

  /** The slot is not started any more, if it has not been. */
  leave(slot: S): void {
    this.#delayed.get(slot)?.clear();
    this.#delayed.delete(slot);
    this.#waiting.delete(slot);
    this.left(slot);
  }

  /** Starts nothing any more. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    for (const timers of [this.#starting, this.#delayed]) {
      for (const timer of timers.values()) timer.clear();
      timers.clear();
    }
  }

  #advance(): void {
    for (const slot of this.#waiting) {
      if (this.#isClosed || this.#starting.size >= this.#most) return;
      this.#waiting.delete(slot);
      // Without a limit nobody waits for the slot, and a timer would keep the program alive.
      if (this.#most !== Number.POSITIVE_INFINITY) {
        this.#starting.set(slot, new Timer(PATIENCE_MS, () => this.left(slot)));
      }
      this.#start(slot);
    }
  }
}
