/**
 * `for (...) await cluster.schedule(...)` runs in microtasks only, in which no result could
 * arrive. So `schedule` lets the event loop turn once in a while.
 */

import { turn } from '../../base/turn.ts';

/** A loop of awaited calls is interrupted after this time. */
const LONGEST_TURN_MS = 1;

export class EventLoopYield {
  #began = 0;
  #turn: Promise<void> | undefined;

  /** Resolves with the value, at once or after a turn of the event loop. */
  async give<T>(value: T): Promise<T> {
    if (this.#turn === undefined) {
      this.#began = performance.now();
      this.#turn = turn().then(() => {
        this.#turn = undefined;
      });
    } else if (performance.now() - this.#began > LONGEST_TURN_MS) await this.#turn;
    return value;
  }
}
