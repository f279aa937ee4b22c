/** A loop of awaited calls is made of microtasks, in which no result would ever arrive. */

import { turn } from '../../base/turn.ts';

/** Such a loop lets the event loop turn that often. */
const LONGEST_TURN_MS = 1;

export class EventLoopYield {
  #began = 0;
  #turn: Promise<void> | undefined;

  /** The value, at once or when the event loop has turned. */
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
