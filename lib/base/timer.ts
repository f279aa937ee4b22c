/** Timers of any length: Node's fire at once beyond 2^31 ms. */

const LONGEST_MS = 2 ** 31 - 1;

/**
 * Calls `fire` once, `ms` milliseconds later by the monotonic clock and never earlier, and keeps
 * the event loop alive until then. A timer of Infinity never fires and keeps nothing alive.
 */
export class Timer {
  #timeout: NodeJS.Timeout | undefined;

  constructor(ms: number, fire: () => void) {
    if (ms === Number.POSITIVE_INFINITY) return;
    const at = performance.now() + ms;
    const arm = (left: number): void => {
      this.#timeout = setTimeout(
        () => {
          const rest = at - performance.now();
          if (rest > 0) arm(rest);
          else fire();
        },
        Math.min(Math.ceil(left), LONGEST_MS),
      );
    };
    arm(ms);
  }

  clear(): void {
    clearTimeout(this.#timeout);
  }
}
