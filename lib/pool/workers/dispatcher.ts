/**
 * Decides which worker of this machine gets which closure.
 *
 * A closure goes to an idle worker. When functions are so short that sending them takes longer
 * than running them, a worker thread is sent several in advance, as one message, up to
 * WORKER_AHEAD_US. Closures that it has not started are recalled when another worker is idle.
 */

import type { Runner } from '../queue/lines/closure-lines.ts';
import type { StrategyHost } from '../queue/strategy.ts';
import type { Availability } from './availability.ts';
import { coalesced, Feeding } from './feeding.ts';
import type { LiveWorker } from './live-worker.ts';
import type { Slots } from './slots.ts';
import type { WorkerSlot } from './worker-slot.ts';

/** A worker is sent closures in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;

export class Dispatcher {
  readonly #host: StrategyHost;
  readonly #slots: Slots;
  readonly #availability: Availability;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  readonly #feeding: Feeding;
  /** Feeds the idle workers in a microtask: `take` may give something. */
  readonly wake: () => void = coalesced(queueMicrotask, () => this.#feedIdle());
  readonly #feedAllSoon: () => void = coalesced(setImmediate, () => this.feedAll());

  constructor(host: StrategyHost, slots: Slots, availability: Availability, concurrency: number) {
    this.#host = host;
    this.#slots = slots;
    this.#availability = availability;
    this.#concurrency = concurrency;
    // Nothing is sent after a function that was never measured.
    this.#feeding = new Feeding(host, WORKER_AHEAD_US, this.wake);
  }

  measure(name: string, us: number): void {
    this.#feeding.measure(name, us);
  }

  /**
   * Feeds idle workers at once, and busy ones in a moment, when more may be queued for one message.
   */
  #feedIdle(): void {
    if (this.#refuseAll()) return;
    const slots = this.#slots.all;
    let hasWork = true;
    for (const slot of slots) {
      this.#prepare(slot);
      if (hasWork || this.#host.hasPlaced) hasWork = this.#feedIfIdle(slot) && hasWork;
    }
    // One worker may have been sent the whole queue, and its functions may run longer than
    // expected.
    const isUneven = (): boolean =>
      slots.some(({ worker }) => worker?.idleSince !== undefined) &&
      slots.some(({ worker }) => worker !== undefined && worker.running > 1);
    const hasMore = hasWork || this.#slots.lacks(this.#host.placedOn);
    if (hasMore || isUneven()) this.#feedAllSoon();
  }

  /** Feeds all workers. */
  feedAll(): void {
    if (this.#refuseAll()) return;
    const slots = this.#slots.all;
    for (const slot of slots) this.#prepare(slot);
    let hasWork = true;
    // Each worker gets one function before any gets a second.
    for (let most = 1; most <= this.#concurrency; most++) {
      for (const { worker } of slots) {
        if (!(hasWork || this.#host.hasPlaced)) break;
        if (worker !== undefined) hasWork = this.#feed(worker, most) && hasWork;
      }
    }
    for (const { worker } of slots) worker?.flush();
    this.#slots.growTo(this.#host.placedOn);
    if (hasWork) {
      this.#slots.grow(Math.ceil(this.#host.waiting / this.#concurrency));
      return;
    }
    this.#rebalance();
    this.#slots.shrinkLater();
  }

  /** @returns false if no closure is queued any more that the worker may run */
  #feed(worker: LiveWorker, most: number): boolean {
    const mayTake = (): boolean => worker.mayTake(most, WORKER_AHEAD_US);
    return this.#feeding.feed(worker, mayTake) !== 'no-work';
  }

  #feedIfIdle({ worker }: WorkerSlot): boolean {
    if (worker?.idleSince === undefined) return true;
    const hasWork = this.#feed(worker, 1);
    worker.flush();
    return hasWork;
  }

  /** @returns whether no worker can be started: then every queued closure fails */
  #refuseAll(): boolean {
    const { error } = this.#availability;
    if (error === undefined) return false;
    for (const { index } of this.#slots.all) {
      const runner: Runner = { canRun: (placement) => placement.fits(index, {}) };
      for (;;) {
        const closure = this.#host.take(runner);
        if (closure === undefined) break;
        this.#host.ended(closure, { state: 'failed', value: error });
      }
    }
    return true;
  }

  /** A worker that is idle gets half of what the fullest worker has not started. */
  #rebalance(): void {
    const workers = this.#slots.all.flatMap(({ worker }) => worker ?? []);
    for (const idle of workers) {
      if (idle.idleSince === undefined) continue;
      const fullest = workers.reduce((most, each) => (each.running > most.running ? each : most));
      if (fullest.running < 2 || fullest.giveBack(Math.ceil((fullest.running - 1) / 2)) === 0)
        return;
      this.#feed(idle, 1);
      idle.flush();
    }
  }

  #prepare(slot: WorkerSlot): void {
    if (!slot.isServing) return;
    for (;;) {
      const work = this.#host.takeTagged(slot.index)?.work;
      if (work === undefined || work.kind === 'call') return;
      slot.prepare(work);
    }
  }
}
