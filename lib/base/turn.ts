/** Lets the event loop of this thread turn. */

/** One turn of the event loop: everything that is ready now runs first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A loop of awaited calls is interrupted after this time. */
const LONGEST_TURN_MS = 1;

/**
 * `for (...) await schedule()` runs in microtasks only, which would starve incoming results:
 * `give` yields to the event loop at least every millisecond.
 */
export class EventLoopYield {
  #began = 0;
  #turn: Promise<void> | undefined;

  /** Resolves to `value`, at once or after the event loop has turned. */
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
