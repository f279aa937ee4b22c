import { within } from '../../base/timer.ts';

const PATIENCE_MS = 5_000;

/**
 * For how long one operation waits for connections, in all. An operation that is begun again after
 * each lost connection ends: from the loss to the next connection a delay passes, which counts here.
 * Its time with a connection does not count.
 */
export class Patience {
  #leftMs = PATIENCE_MS;

  get isOver(): boolean {
    return this.#leftMs <= 0;
  }

  /** Resolves when `changed` is settled, at the latest when the patience is over. */
  async wait(changed: Promise<void>): Promise<void> {
    const began = performance.now();
    await within(this.#leftMs, changed, () => {});
    this.#leftMs -= performance.now() - began;
  }
}
