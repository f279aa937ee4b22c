/**
 * The slots of a pool, and how many: as many as `resize` says; or between `min` and `max`, more while
 * closures wait, fewer when workers are idle.
 *
 * 1. A slot in `#leaving` ends its worker when that runs nothing, and is then removed. Until then
 *    it keeps its index. If more workers are wanted meanwhile, the slot stays, and its worker is
 *    replaced.
 * 2. By `resize` the slots with the highest indexes leave: those of the others stay 0, 1, 2, …
 * 3. At most one timer runs: it is set when a worker is idle, and looks again when that worker may
 *    have been idle for long enough. It does not keep the program alive.
 */

import { Timer } from '../../base/timer.ts';
import { counted } from '../../coordinator/words.ts';
import { CancelledError } from '../../errors/errors.ts';
import type { WorkerSlot } from './worker-slot.ts';

/** Limits of a pool whose size follows its work. */
export type Elastic = { readonly min: number; readonly max: number; readonly idleMs: number };

export interface SlotsListener {
  /** @returns a slot, which has no worker */
  make(index: number): WorkerSlot;
  /** A slot was added: its worker is to be started. */
  added(slot: WorkerSlot): void;
  /** A slot without a worker was removed. */
  removed(slot: WorkerSlot): void;
}

type Resize = { resolve: () => void; reject: (error: Error) => void };
/** Calls of `resize` that have failed, and the slots to be removed before they reject. */
type Undoing = {
  readonly error: Error;
  readonly resizes: Resize[];
  readonly slots: Set<WorkerSlot>;
};

export class Slots {
  readonly #pool: SlotsListener;
  /** By index. */
  #all: readonly WorkerSlot[] = [];
  readonly #leaving = new Set<WorkerSlot>();
  #resizes: Resize[] = [];
  /** The slots that the calls in `#resizes` have added. */
  #begun: WorkerSlot[] = [];
  #undoings: Undoing[] = [];
  /** Undefined: the size is fixed. */
  #elastic: Elastic | undefined;
  #idle: Timer | undefined;

  constructor(pool: SlotsListener, elastic: Elastic | undefined) {
    this.#pool = pool;
    this.#elastic = elastic;
  }

  get all(): readonly WorkerSlot[] {
    return this.#all;
  }

  has(slot: WorkerSlot): boolean {
    return this.#all.includes(slot);
  }

  /** Adds a slot with this index, or the lowest free one, and starts its worker. */
  add(index?: number): void {
    const used = new Set(this.#all.map((slot) => slot.index));
    let free = 0;
    while (used.has(free)) free += 1;
    const slot = this.#pool.make(index ?? free);
    this.#all = [...this.#all, slot].toSorted((one, other) => one.index - other.index);
    this.#pool.added(slot);
  }

  /** Whether there is a worker with this index, or may be one. */
  mayHave(index: number): boolean {
    return this.#elastic === undefined ? this.#stays(index) : index < this.#elastic.max;
  }

  /** How many workers there are, or may be, for messages. */
  get text(): string {
    return `the cluster has ${counted(this.#elastic?.max ?? this.staying.length, 'worker')}`;
  }

  /** Whether one of these workers is not there, and may be added. */
  lacks(indexes: readonly number[]): boolean {
    return this.#elastic !== undefined && indexes.some((index) => !this.#stays(index));
  }

  /** Adds these workers, as far as they are not there and the size follows the work. */
  growTo(indexes: readonly number[]): void {
    if (!this.lacks(indexes)) return;
    for (const index of indexes) {
      if (this.#stays(index)) continue;
      const leaving = [...this.#leaving].find((slot) => slot.index === index);
      if (leaving === undefined) this.add(index);
      else this.#leaving.delete(leaving);
    }
  }

  #stays(index: number): boolean {
    return this.staying.some((slot) => slot.index === index);
  }

  /** Adds workers for closures that wait: `wanted` is how many could be used at once. */
  grow(wanted: number): void {
    if (this.#elastic === undefined) return;
    const { staying } = this;
    const starting = staying.filter(({ isLoaded }) => !isLoaded).length;
    const room = this.#elastic.max - staying.length;
    for (let missing = Math.min(wanted - starting, room); missing > 0; missing -= 1) {
      this.#addOne();
    }
  }

  /** Some workers may be idle: those that are so for `idleMs` end, as long as more than `min` stay. */
  shrinkLater(): void {
    if (this.#elastic === undefined || this.#idle !== undefined) return;
    const { staying } = this;
    if (staying.length <= this.#elastic.min) return;
    const idle = staying.flatMap(({ worker }) => worker?.idleSince ?? []);
    if (idle.length === 0) return;
    const since = Math.min(...idle);
    const left = Math.max(0, this.#elastic.idleMs - (performance.now() - since));
    this.#idle = new Timer(left, () => {
      this.#idle = undefined;
      this.#shrink();
      this.shrinkLater();
    }).unref();
  }

  #shrink(): void {
    if (this.#elastic === undefined) return;
    const { min, idleMs } = this.#elastic;
    const { staying } = this;
    const isSurplus = ({ worker }: WorkerSlot): boolean =>
      performance.now() - (worker?.idleSince ?? Number.POSITIVE_INFINITY) >= idleMs;
    const most = Math.max(0, staying.length - min);
    this.#letGo(staying.filter(isSurplus).toReversed().slice(0, most));
  }

  /** From now on its size does not follow the work. */
  #fix(): void {
    this.#elastic = undefined;
    this.#idle?.clear();
  }

  /** Keeps a slot that is leaving, or adds one. */
  #addOne(): void {
    const [slot] = this.#leaving;
    if (slot === undefined) this.add();
    else this.#leaving.delete(slot);
  }

  isLeaving(slot: WorkerSlot): boolean {
    return this.#leaving.has(slot);
  }

  /** The slots that stay. */
  get staying(): WorkerSlot[] {
    return this.#all.filter((slot) => !this.#leaving.has(slot));
  }

  /**
   * Resolves when that many workers are ready. Of calls that overlap the last one
   * wins, and all resolve then.
   */
  resize(workers: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fix();
      this.#resizes.push({ resolve, reject });
      this.#setTo(workers);
      this.check();
    });
  }

  /** A slot was removed, or its worker has become ready: `resize` may have come to its end. */
  check(): void {
    if (this.#resizes.length === 0 || this.#leaving.size > 0) return;
    if (!this.#all.every(({ isReady }) => isReady)) return;
    for (const { resolve } of this.#takeResizes()) resolve();
  }

  /** Nothing is added any more, and no idle worker ended; every `resize` under way rejects. */
  end(error: Error): void {
    this.#fix();
    const undoings = this.#undoings;
    this.#undoings = [];
    for (const undoing of undoings) rejectAll(undoing);
    rejectAll({ error, resizes: this.#takeResizes() });
  }

  /**
   * A worker could not be started: every `resize` that has not come to its end rejects, when the
   * workers that it had begun are gone.
   */
  undo(error: Error): void {
    if (this.#resizes.length === 0) return;
    const slots = this.#begun.filter((slot) => this.#all.includes(slot));
    const resizes = this.#takeResizes();
    if (slots.length === 0) return rejectAll({ error, resizes });
    this.#undoings.push({ error, resizes, slots: new Set(slots) });
    this.#letGo(slots);
  }

  /** Removes a slot that has no worker any more. */
  remove(slot: WorkerSlot): void {
    this.#all = this.#all.filter((each) => each !== slot);
    this.#pool.removed(slot);
    this.#leaving.delete(slot);
    for (const { slots } of this.#undoings) slots.delete(slot);
    const done = this.#undoings.filter(({ slots }) => slots.size === 0);
    this.#undoings = this.#undoings.filter(({ slots }) => slots.size > 0);
    for (const undoing of done) rejectAll(undoing);
    this.check();
  }

  #setTo(workers: number): void {
    const before = new Set(this.#all);
    for (let missing = workers - this.staying.length; missing > 0; missing -= 1) this.#addOne();
    this.#begun.push(...this.#all.filter((slot) => !before.has(slot)));
    this.#letGo(this.staying.slice(workers));
  }

  /** All are in #leaving before the first is removed: else `check` would be satisfied too early. */
  #letGo(slots: readonly WorkerSlot[]): void {
    for (const slot of slots) this.#leaving.add(slot);
    for (const slot of slots) {
      if (slot.worker === undefined) this.remove(slot);
      else slot.retire(new CancelledError('The worker is not needed any more'));
    }
  }

  #takeResizes(): Resize[] {
    const all = this.#resizes;
    this.#resizes = [];
    this.#begun = [];
    return all;
  }
}

function rejectAll({ error, resizes }: Pick<Undoing, 'error' | 'resizes'>): void {
  for (const resize of resizes) resize.reject(error);
}
