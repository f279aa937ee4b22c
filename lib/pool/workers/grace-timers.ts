/** A timer for a closure: how long it may run, or go on when it was cancelled. */

import { Timer } from '../../base/timer.ts';

export class GraceTimers {
  /** By the id of the closure. */
  readonly #timers = new Map<number, Timer>();

  /** Calls `onOver` after `ms` milliseconds, unless the closure is cleared. The first call counts. */
  start(id: number, ms: number, onOver: () => void): void {
    if (!this.#timers.has(id)) this.#timers.set(id, new Timer(ms, onOver));
  }

  clear(id: number): void {
    this.#timers.get(id)?.clear();
    this.#timers.delete(id);
  }

  clearAll(): void {
    for (const timer of this.#timers.values()) timer.clear();
    this.#timers.clear();
  }
}
