/**
 * The slots of a pool: how many there are, which of them start now, and which worker gets which call.
 */

import { codeOf, fieldOf, messageOf } from '../../base/thrown-value.ts';
import { RealTimer, setImmediate, soon, Timer } from '../../base/timer.ts';
import { counted, duration } from '../../coordinator/words.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import type { Call } from '../queue/call.ts';
import type { Runner } from '../queue/call-lines.ts';
import type { QueuedCalls } from '../queue/call-queue.ts';
import type { StrategyHost } from '../queue/strategy.ts';
import { coalesced, Feeding } from './feeding.ts';
import type { LiveWorker } from './live-worker.ts';
import type { WorkerSlot } from './worker-slot.ts';

// How many slots: as many as `resize` says; or between `min` and `max`, more while calls wait, fewer
// when workers are idle.
//
// 1. A slot in `#leaving` ends its worker when that runs nothing, and is then removed. Until then
//    it keeps its index. If more workers are wanted meanwhile, the slot stays, and its worker is
//    replaced.
// 2. By `resize` the slots with the highest indexes leave: those of the others stay 0, 1, 2, …
// 3. At most one timer runs: it is set when a worker is idle, and looks again when that worker may
//    have been idle for long enough. It does not keep the program alive.

/** Limits of a pool whose size follows its work. */
export type Elastic = { readonly min: number; readonly max: number; readonly idleMs: number };

type SlotsSettings = {
  /** 'pool' or 'cluster'. */
  readonly poolName: string;
  /** Undefined: the size is fixed. */
  readonly elastic: Elastic | undefined;
  readonly starts: StartLine;
  /** @returns a slot, which has no worker */
  make(index: number): WorkerSlot;
  /** A slot without a worker was removed. */
  removed(slot: WorkerSlot): void;
};

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
  readonly #pool: SlotsSettings;
  /** By index. */
  #all: readonly WorkerSlot[] = [];
  readonly #leaving = new Set<WorkerSlot>();
  #resizes: Resize[] = [];
  /** From `resize` on undefined. */
  #elastic: Elastic | undefined;
  #idle: Timer | undefined;

  constructor(pool: SlotsSettings) {
    this.#pool = pool;
    this.#elastic = pool.elastic;
  }

  get all(): readonly WorkerSlot[] {
    return this.#all;
  }

  get ready(): WorkerSlot[] {
    return this.#all.filter(({ isReady }) => isReady);
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
    this.#pool.starts.enter(slot);
  }

  /** @returns why there is no worker with this index, and never will be */
  whyNowhere(index: number): string | undefined {
    const max = this.#elastic?.max;
    if (max === undefined ? this.#stays(index) : index < max) return undefined;
    return `the ${this.#pool.poolName} has ${counted(max ?? this.staying.length, 'worker')}`;
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
    this.#pool.starts.leave(slot);
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

class Availability {
  readonly #afterMs: number;
  readonly #onUnavailable: () => void;
  /** From the first start that has failed while no worker was ready, until one is. */
  #failing: { cause: Error; readonly timer: RealTimer } | undefined;
  #error: UnavailableError | undefined;

  constructor(afterMs: number, onUnavailable: () => void) {
    this.#afterMs = afterMs;
    this.#onUnavailable = onUnavailable;
  }

  /** With what calls are rejected now. */
  get error(): UnavailableError | undefined {
    return this.#error;
  }

  workerIsReady(): void {
    this.close();
    this.#failing = undefined;
    this.#error = undefined;
  }

  /** A worker could not be started, and none is ready. */
  startHasFailed(cause: Error): void {
    if (this.#error !== undefined) this.#error = this.#because(cause);
    else if (this.#failing !== undefined) this.#failing.cause = cause;
    else {
      const timer = new RealTimer(this.#afterMs, () => {
        this.#error = this.#because(failing.cause);
        this.#onUnavailable();
      }).unref();
      const failing = { cause, timer };
      this.#failing = failing;
    }
  }

  /** Nothing is started any more. */
  close(): void {
    this.#failing?.timer.clear();
  }

  #because(cause: Error): UnavailableError {
    const text = `No worker has been ready for ${duration(this.#afterMs)}. Last: ${messageOf(cause)}`;
    return new UnavailableError(text, { cause });
  }
}

// Starts workers a few at a time: hundreds of threads that start at once leave this process's main
// thread no processor, and it has to answer others meanwhile.

/** A worker that has not started after this time lets the next one start: its module may wait. */
const PATIENCE_MS = 1_000;

export class StartLine {
  #most: number;
  readonly #start: (slot: WorkerSlot) => void;
  readonly #starting = new Map<WorkerSlot, RealTimer>();
  readonly #waiting = new Set<WorkerSlot>();
  /** Those that enter later. */
  readonly #delayed = new Map<WorkerSlot, RealTimer>();

  /** `most`: how many may start at the same time. */
  constructor(most: number, start: (slot: WorkerSlot) => void) {
    this.#most = most;
    this.#start = start;
  }

  /** Calls `start` for the slot, now or when it is its turn. */
  enter(slot: WorkerSlot): void {
    this.#waiting.add(slot);
    this.#advance();
  }

  /** Enters the slot after `ms` milliseconds, unless it leaves before. */
  enterLater(slot: WorkerSlot, ms: number): void {
    const timer = new RealTimer(ms, () => {
      this.#delayed.delete(slot);
      this.enter(slot);
    });
    this.#delayed.set(slot, timer);
  }

  /** The slot has started, or failed to. */
  left(slot: WorkerSlot): void {
    const timer = this.#starting.get(slot);
    if (timer === undefined) return;
    timer.clear();
    this.#starting.delete(slot);
    this.#advance();
  }

  /** The slot is not started any more, if it has not been. */
  leave(slot: WorkerSlot): void {
    this.#delayed.get(slot)?.clear();
    this.#delayed.delete(slot);
    this.#waiting.delete(slot);
    this.left(slot);
  }

  /** Starts nothing any more. */
  close(): void {
    this.#most = 0;
    this.#waiting.clear();
    for (const timers of [this.#starting, this.#delayed]) {
      for (const timer of timers.values()) timer.clear();
      timers.clear();
    }
  }

  #advance(): void {
    for (const slot of this.#waiting) {
      if (this.#starting.size >= this.#most) return;
      this.#waiting.delete(slot);
      // Without a limit nobody waits for the slot, and a timer would keep the program alive.
      if (this.#most !== Number.POSITIVE_INFINITY) {
        this.#starting.set(slot, new RealTimer(PATIENCE_MS, () => this.left(slot)));
      }
      this.#start(slot);
    }
  }
}

// Which worker gets which call.
//
// A call goes to an idle worker. When functions are so short that sending them takes longer
// than running them, a worker thread is sent several in advance, as one message, up to
// WORKER_AHEAD_US. Calls that it has not started are recalled when another worker is idle.

/** A worker is sent calls in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;

export class Dispatcher {
  readonly #host: StrategyHost;
  readonly #slots: Slots;
  /** Whether calls may wait for a worker. */
  readonly availability: Availability;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  readonly feeding: Feeding;
  /** Feeds the idle workers in a microtask: `take` may give something. */
  readonly wake: () => void = coalesced(soon, () => this.#feedIdle());
  readonly #feedAllSoon: () => void = coalesced(setImmediate, () => this.feedAll());

  constructor(host: StrategyHost, slots: Slots, concurrency: number, unavailableAfterMs: number) {
    this.#host = host;
    this.#slots = slots;
    this.#concurrency = concurrency;
    this.availability = new Availability(unavailableAfterMs, () => this.feedAll());
    // Nothing is sent after a function that was never measured.
    this.feeding = new Feeding(host.queue, WORKER_AHEAD_US, this.wake);
  }

  /**
   * Feeds idle workers at once, and busy ones in a moment, when more may be queued for one message.
   */
  #feedIdle(): void {
    if (this.#refuseAll()) return;
    const slots = this.#slots.all;
    let hasWork = this.#host.queue.queued > 0;
    for (const { worker } of slots) {
      if (!(hasWork || this.#host.queue.line.hasPlaced)) break;
      if (worker?.idleSince === undefined) continue;
      hasWork = this.#feed(worker, 1) && hasWork;
      worker.flush();
    }
    // One worker may have been sent the whole queue, and its functions may run longer than
    // expected.
    if (hasWork || this.#slots.lacks(this.#host.queue.line) || this.#isUneven())
      this.#feedAllSoon();
  }

  /** Feeds all workers. */
  feedAll(): void {
    if (this.#refuseAll()) return;
    const slots = this.#slots.all;
    const { queue } = this.#host;
    let hasWork = queue.queued > 0;
    if (hasWork) {
      // Each worker gets one function before any gets a second.
      for (let most = 1; most <= this.#concurrency; most++) {
        for (const { worker } of slots) {
          if (!(hasWork || queue.line.hasPlaced)) break;
          if (worker !== undefined) hasWork = this.#feed(worker, most) && hasWork;
        }
      }
      for (const { worker } of slots) worker?.flush();
    }
    if (!hasWork) this.#rebalance();
    this.#slots.follow(queue, hasWork, this.#concurrency);
  }

  /** @returns false if no call is queued any more that the worker may run */
  #feed(worker: LiveWorker, most: number): boolean {
    const mayTake = (): boolean => worker.mayTake(most, WORKER_AHEAD_US);
    return this.feeding.feed(worker, mayTake) !== 'no-work';
  }

  /** @returns whether no worker can be started: then every queued call fails */
  #refuseAll(): boolean {
    const { error } = this.availability;
    if (error === undefined) return false;
    const all: Runner = { abilities: () => () => true }; // also those of a worker that would be added
    for (;;) {
      const call = this.#host.queue.take(all);
      if (call === undefined) return true;
      this.#host.ended(call, { state: 'failed', value: error });
    }
  }

  /** The worker that has most calls, of those that have more than one. */
  get #fullest(): LiveWorker | undefined {
    let fullest: LiveWorker | undefined;
    for (const { worker } of this.#slots.all) {
      if (worker !== undefined && worker.running > (fullest?.running ?? 1)) fullest = worker;
    }
    return fullest;
  }

  #isUneven(): boolean {
    if (this.#fullest === undefined) return false;
    return this.#slots.all.some(({ worker }) => worker?.idleSince !== undefined);
  }

  /** A worker that is idle gets half of what the fullest worker has not started. */
  #rebalance(): void {
    let fullest = this.#fullest;
    for (const { worker } of this.#slots.all) {
      if (fullest === undefined) return;
      if (worker?.idleSince === undefined) continue;
      if (fullest.giveBack(Math.ceil((fullest.running - 1) / 2)) === 0) return;
      this.#feed(worker, 1);
      worker.flush();
      fullest = this.#fullest;
    }
  }
}
