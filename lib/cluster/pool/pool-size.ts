/**
 * How many workers a pool has: as many as `resize` says.
 *
 * 1. A slot in `#leaving` ends its worker when that runs nothing, and is then removed. Until then
 *    it keeps its index. If more workers are wanted meanwhile, the slot stays, and its worker is
 *    replaced.
 * 2. The slots with the highest indexes leave: the indexes of the others stay 0, 1, 2, …
 */

import type { WorkerSlot } from './worker-slot.ts';

export interface PoolSizeListener {
  /** The slots of the pool, by index. */
  readonly slots: readonly WorkerSlot[];
  /** Adds a slot with the lowest free index, and starts its worker. */
  add(): void;
  /** Ends the slot's worker when it runs nothing. The slot is removed when the worker is gone. */
  letGo(slot: WorkerSlot): void;
}

type Resize = { resolve: () => void; reject: (error: Error) => void };

export class PoolSize {
  readonly #pool: PoolSizeListener;
  readonly #leaving = new Set<WorkerSlot>();
  #resizes: Resize[] = [];

  constructor(pool: PoolSizeListener) {
    this.#pool = pool;
  }

  isLeaving(slot: WorkerSlot): boolean {
    return this.#leaving.has(slot);
  }

  /** The slots that stay. */
  get staying(): WorkerSlot[] {
    return this.#pool.slots.filter((slot) => !this.#leaving.has(slot));
  }

  /**
   * Resolves when there are so many workers, and all are ready. Of calls that overlap the last one
   * wins, and all resolve then.
   */
  resize(workers: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resizes.push({ resolve, reject });
      this.#setTo(workers);
      this.check();
    });
  }

  /** A slot was removed, or its worker has become ready: `resize` may have come to its end. */
  check(): void {
    if (this.#resizes.length === 0 || this.#leaving.size > 0) return;
    if (!this.#pool.slots.every(({ isReady }) => isReady)) return;
    for (const { resolve } of this.#takeResizes()) resolve();
  }

  /** Rejects every `resize` that has not come to its end. */
  fail(error: Error): void {
    for (const { reject } of this.#takeResizes()) reject(error);
  }

  /** The slot was removed. */
  removed(slot: WorkerSlot): void {
    this.#leaving.delete(slot);
    this.check();
  }

  #setTo(workers: number): void {
    let missing = workers - this.staying.length;
    for (const slot of this.#leaving) {
      if (missing <= 0) break;
      this.#leaving.delete(slot);
      missing -= 1;
    }
    for (; missing > 0; missing -= 1) this.#pool.add();
    this.#letGo(this.staying.slice(workers));
  }

  /** All are in #leaving before the first is removed: else `check` would be satisfied too early. */
  #letGo(slots: readonly WorkerSlot[]): void {
    for (const slot of slots) this.#leaving.add(slot);
    for (const slot of slots) this.#pool.letGo(slot);
  }

  #takeResizes(): Resize[] {
    const all = this.#resizes;
    this.#resizes = [];
    return all;
  }
}
