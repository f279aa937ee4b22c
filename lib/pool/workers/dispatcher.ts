/**
 * Decides which worker of this machine gets which call.
 *
 * A call goes to an idle worker. When functions are so short that sending them takes longer
 * than running them, a worker thread is sent several in advance, as one message, up to
 * WORKER_AHEAD_US. Calls that it has not started are recalled when another worker is idle.
 */

import { setImmediate, soon } from '../../base/timer.ts';
import type { Runner } from '../queue/call-lines.ts';
import type { StrategyHost } from '../queue/strategy.ts';
import { coalesced, Feeding } from './feeding.ts';
import type { LiveWorker } from './live-worker.ts';
import type { Availability, Slots } from './slots.ts';

/** A worker is sent calls in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;

export class Dispatcher {
  readonly #host: StrategyHost;
  readonly #slots: Slots;
  readonly #availability: Availability;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  readonly #feeding: Feeding;
  /** Feeds the idle workers in a microtask: `take` may give something. */
  readonly wake: () => void = coalesced(soon, () => this.#feedIdle());
  readonly #feedAllSoon: () => void = coalesced(setImmediate, () => this.feedAll());

  constructor(host: StrategyHost, slots: Slots, availability: Availability, concurrency: number) {
    this.#host = host;
    this.#slots = slots;
    this.#availability = availability;
    this.#concurrency = concurrency;
    // Nothing is sent after a function that was never measured.
    this.#feeding = new Feeding(host.queue, WORKER_AHEAD_US, this.wake);
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
    return this.#feeding.feed(worker, mayTake) !== 'no-work';
  }

  /** @returns whether no worker can be started: then every queued call fails */
  #refuseAll(): boolean {
    const { error } = this.#availability;
    if (error === undefined) return false;
    const all: Runner = { canRun: () => true }; // also those of a worker that would be added
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
