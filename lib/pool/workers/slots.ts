/**
 * The slots of a pool, and how many: as many as `resize` says; or between `min` and `max`, more while
 * calls wait, fewer when workers are idle.
 *
 * 1. A slot in `#leaving` ends its worker when that runs nothing, and is then removed. Until then
 *    it keeps its index. If more workers are wanted meanwhile, the slot stays, and its worker is
 *    replaced.
 * 2. By `resize` the slots with the highest indexes leave: those of the others stay 0, 1, 2, …
 * 3. At most one timer runs: it is set when a worker is idle, and looks again when that worker may
 *    have been idle for long enough. It does not keep the program alive.
 */

import { codeOf, fieldOf, messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { counted, duration } from '../../coordinator/words.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import type { Call } from '../queue/call.ts';
import type { QueuedCalls } from '../queue/call-queue.ts';
import type { WorkerSlot } from './worker-slot.ts';

/** Limits of a pool whose size follows its work. */
export type Elastic = { readonly min: number; readonly max: number; readonly idleMs: number };

export interface SlotsListener {
  /** 'pool' or 'cluster'. */
  readonly poolName: string;
  /** @returns a slot, which has no worker */
  make(index: number): WorkerSlot;
  /** A slot was added: its worker is to be started. */
  added(slot: WorkerSlot): void;
  /** A slot without a worker was removed. */
  removed(slot: WorkerSlot): void;
}

/** A call of `resize` that has not come to its end. */
type Resize = {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  /** The slots that it has added. */
  begun: readonly WorkerSlot[];
  /** Why it has failed: it rejects when those slots are gone. */
  error?: Error;
};

export class Slots {
  readonly #pool: SlotsListener;
  /** By index. */
  #all: readonly WorkerSlot[] = [];
  readonly #leaving = new Set<WorkerSlot>();
  #resizes: Resize[] = [];
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
    return `the ${this.#pool.poolName} has ${counted(this.#elastic?.max ?? this.staying.length, 'worker')}`;
  }

  /** Whether calls are placed on a worker that is not there, and may be added. */
  lacks(line: QueuedCalls<Call>['line']): boolean {
    if (this.#elastic === undefined) return false;
    return line.placedOn.some((index) => !this.#stays(index));
  }

  /**
   * The size follows the work, if it is not fixed: workers on which calls are placed are added;
   * others as well, if there is more work than the workers take; or those that are idle end.
   */
  follow(queue: QueuedCalls<Call>, hasWork: boolean, concurrency: number): void {
    if (this.#elastic === undefined) return;
    for (const index of queue.line.placedOn) {
      if (this.#stays(index)) continue;
      const leaving = [...this.#leaving].find((slot) => slot.index === index);
      if (leaving === undefined) this.add(index);
      else this.#leaving.delete(leaving);
    }
    if (hasWork) this.#grow(Math.ceil(queue.queued / concurrency), this.#elastic);
    else this.#shrinkLater(this.#elastic);
  }

  #stays(index: number): boolean {
    return this.staying.some((slot) => slot.index === index);
  }

  /** `wanted`: how many workers more could be used at once. */
  #grow(wanted: number, { max }: Elastic): void {
    const { staying } = this;
    const starting = staying.filter(({ isLoaded }) => !isLoaded).length;
    const room = max - staying.length;
    for (let missing = Math.min(wanted - starting, room); missing > 0; missing -= 1) {
      this.#addOne();
    }
  }

  /** Some workers may be idle: those that are so for `idleMs` end, as long as more than `min` stay. */
  #shrinkLater(elastic: Elastic): void {
    if (this.#idle !== undefined) return;
    const { staying } = this;
    if (staying.length <= elastic.min) return;
    const idle = staying.flatMap(({ worker }) => worker?.idleSince ?? []);
    if (idle.length === 0) return;
    const left = Math.max(0, elastic.idleMs - (performance.now() - Math.min(...idle)));
    this.#idle = new Timer(left, () => {
      this.#idle = undefined;
      this.#shrink(elastic);
      this.#shrinkLater(elastic);
    }).unref();
  }

  #shrink({ min, idleMs }: Elastic): void {
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
      const before = this.#all;
      for (let missing = workers - this.staying.length; missing > 0; missing -= 1) this.#addOne();
      const begun = this.#all.filter((slot) => !before.includes(slot));
      this.#resizes.push({ resolve, reject, begun });
      this.#letGo(this.staying.slice(workers));
      this.check();
    });
  }

  /** A slot was removed, or its worker has become ready: `resize` may have come to its end. */
  check(): void {
    const isThere = this.#leaving.size === 0 && this.#all.every(({ isReady }) => isReady);
    this.#resizes = this.#resizes.filter(({ resolve, reject, begun, error }) => {
      if (error === undefined && isThere) resolve();
      else if (error !== undefined && !begun.some((slot) => this.#leaving.has(slot))) reject(error);
      else return true;
      return false;
    });
  }

  /** Nothing is added any more, and no idle worker ended; every `resize` under way rejects. */
  end(error: Error): void {
    this.#fix();
    for (const resize of this.#resizes) resize.reject(resize.error ?? error);
    this.#resizes = [];
  }

  /**
   * A worker could not be started: every `resize` that has not come to its end rejects, when the
   * workers that it had begun are gone.
   */
  undo(error: Error): void {
    const failed = this.#resizes.filter((resize) => resize.error === undefined);
    for (const resize of failed) resize.error = error;
    this.#letGo(failed.flatMap(({ begun }) => begun).filter((slot) => this.has(slot)));
    this.check();
  }

  /** Removes a slot that has no worker any more. */
  remove(slot: WorkerSlot): void {
    this.#all = this.#all.filter((each) => each !== slot);
    this.#pool.removed(slot);
    this.#leaving.delete(slot);
    this.check();
  }

  /** All are in #leaving before the first is removed: else `check` would be satisfied too early. */
  #letGo(slots: readonly WorkerSlot[]): void {
    for (const slot of slots) this.#leaving.add(slot);
    for (const slot of slots) {
      if (slot.worker === undefined) this.remove(slot);
      else slot.retire(new CancelledError('The worker is not needed any more'));
    }
  }
}

// Whether calls may wait for a worker of this machine. They may while one is ready, and for a while
// after a start has failed: starting goes on, and a shortage may pass.

/** 'failing' since the first start that has failed while no worker was ready. */
type State =
  | { readonly kind: 'available' }
  | { readonly kind: 'failing'; readonly cause: Error; readonly timer: Timer }
  | { readonly kind: 'unavailable'; readonly error: UnavailableError };

/** Of a system that has no more threads, processes, memory or descriptors now. */
const SHORTAGES = new Set<unknown>([
  'ERR_WORKER_INIT_FAILED',
  'ERR_WORKER_OUT_OF_MEMORY',
  'EAGAIN',
  'ENOMEM',
  'EMFILE',
  'ENFILE',
]);

export function isShortage(error: unknown): boolean {
  const cause = fieldOf(error, 'cause');
  return SHORTAGES.has(codeOf(error)) || (cause !== undefined && isShortage(cause));
}

export class Availability {
  readonly #afterMs: number;
  readonly #onUnavailable: () => void;
  #state: State = { kind: 'available' };

  constructor(afterMs: number, onUnavailable: () => void) {
    this.#afterMs = afterMs;
    this.#onUnavailable = onUnavailable;
  }

  /** With what calls are rejected now. */
  get error(): UnavailableError | undefined {
    return this.#state.kind === 'unavailable' ? this.#state.error : undefined;
  }

  workerIsReady(): void {
    this.close();
    this.#state = { kind: 'available' };
  }

  /** A worker could not be started, and none is ready. */
  startHasFailed(cause: Error): void {
    const state = this.#state;
    if (state.kind === 'unavailable')
      this.#state = { kind: 'unavailable', error: this.#because(cause) };
    else if (state.kind === 'failing') this.#state = { ...state, cause };
    else {
      const timer = new Timer(this.#afterMs, () => this.#isOver()).unref();
      this.#state = { kind: 'failing', cause, timer };
    }
  }

  /** Nothing is started any more. */
  close(): void {
    if (this.#state.kind === 'failing') this.#state.timer.clear();
  }

  #isOver(): void {
    if (this.#state.kind !== 'failing') return;
    this.#state = { kind: 'unavailable', error: this.#because(this.#state.cause) };
    this.#onUnavailable();
  }

  #because(cause: Error): UnavailableError {
    const text = `No worker has been ready for ${duration(this.#afterMs)}. Last: ${messageOf(cause)}`;
    return new UnavailableError(text, { cause });
  }
}
