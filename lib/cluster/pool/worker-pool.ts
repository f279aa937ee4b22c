/**
 * The workers on this machine: gives closures to them, and replaces those that die.
 *
 * A closure goes to an idle worker. When functions are so short that sending them takes longer
 * than running them, a worker thread is sent several in advance, as one message, up to
 * WORKER_AHEAD_US. Closures that it has not started are recalled when another worker is idle.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { EngineReadiness, ReadinessReport } from '../../errors/readiness-report.ts';
import type { Closure } from '../closures/closure.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../closures/strategy.ts';
import { CLAIMS, TO_WORKER } from '../worker/protocol.ts';
import { applyStop, stopMessage } from '../worker/stop-relay.ts';
import type { Isolation, WorkerName } from './channel.ts';
import { FunctionDurations } from './function-durations.ts';
import { type KillOrder, KillOrders } from './kill-orders.ts';
import { type Death, WorkerSlot } from './worker-slot.ts';

/** A worker is sent closures in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;
/**
 * The expected time of a function that was never measured: so long that nothing is sent after it.
 */
const UNMEASURED_US: number = WORKER_AHEAD_US;
/** The pool fails after this number of deaths per worker, if no function has ended in between. */
const MAX_DEATHS = 10;
const FIRST_RESTART_DELAY_MS = 50;
const LONGEST_RESTART_DELAY_MS = 2_000;

export type PoolSettings = {
  module: URL;
  workers: number;
  isolation: Isolation;
  /** Set on a NATS node, where all workers are one task. Undefined: each worker is its own task. */
  task?: WorkerName;
};

export class WorkerPool implements Engine {
  readonly sharesMemory: boolean;
  readonly #host: StrategyHost;
  readonly #slots: WorkerSlot[];
  #functions: string[] | undefined;
  readonly #durations = new FunctionDurations();
  /** By worker: its deaths since a function last ended on it. */
  readonly #deaths: number[];
  /** Deaths of all workers since a function last ended on any of them. */
  #deathsInARow = 0;
  readonly #restarts = new Set<Timer>();
  readonly #killOrders = new KillOrders<WorkerSlot>();
  #failure: Error | undefined;
  #isClosing = false;
  #onAllGone: (() => void) | undefined;
  #isFeedIdleDue = false;
  #isFeedAllDue = false;

  constructor(host: StrategyHost, { module, workers, isolation, task }: PoolSettings) {
    this.#host = host;
    this.sharesMemory = isolation === 'thread';
    this.#deaths = Array.from({ length: workers }, () => 0);
    this.#slots = Array.from(
      { length: workers },
      (_, index) =>
        new WorkerSlot(
          index,
          module,
          isolation,
          host,
          {
            onFree: () => this.#feedAll(),
            onFunctions: (names) => {
              this.#functions = names;
            },
            onImportFailed: (_slot, error) => this.#fail(importError(module, error)),
            onGone: (slot, death) => this.#onGone(slot, death),
            onStop: (message) => applyStop(this.#host.coordinator, message),
            onResult: (slot, name, us) => {
              this.#deaths[slot.index] = 0;
              this.#deathsInARow = 0;
              this.#durations.measure(name, us);
            },
            onBegun: (slot, id) => this.#killOrders.onBegun(slot, id),
            onSpared: (slot, id) => this.#killOrders.onSpared(slot, id, this.#slots),
          },
          task,
        ),
    );
    for (const slot of this.#slots) this.#startSlot(slot);
    if (isolation === 'process') {
      host.coordinator.signal.addEventListener('abort', () => this.#sendStop());
    }
  }

  get functions(): readonly string[] | undefined {
    return this.#functions;
  }

  get indexes(): number[] {
    return this.#slots.filter(({ isLoaded }) => isLoaded).map(({ index }) => index);
  }

  get workers(): WorkerInfo[] {
    return this.#slots.flatMap((slot) => [slot.info, ...slot.stuck.map(({ info }) => info)]);
  }

  report(): ReadinessReport {
    const tasks = this.#slots.map(({ readiness }) => readiness);
    const ready = this.#failure === undefined && tasks.every((task) => task.ready);
    const engine: EngineReadiness =
      this.#failure === undefined
        ? { phase: 'ready' }
        : { phase: 'failed', cause: this.#failure.message };
    return { ready, engine, tasks };
  }

  stats(): Record<string, number> {
    return { restarts: this.#slots.reduce((sum, { restarts }) => sum + restarts, 0) };
  }

  setNeeded(needed: boolean): void {
    for (const slot of this.#slots) slot.setReferenced(needed);
  }

  wake(): void {
    if (this.#isFeedIdleDue) return;
    this.#isFeedIdleDue = true;
    queueMicrotask(() => {
      this.#isFeedIdleDue = false;
      this.#feedIdle();
    });
  }

  cancel(closure: Closure, cancellation: Cancellation): void {
    for (const slot of this.#slots) if (slot.cancel(closure, cancellation)) return;
  }

  /** @returns whether the closure was recalled: it was here, and no worker had started it */
  recall(closure: Closure): boolean {
    return this.#slots.some((slot) => slot.recall(closure));
  }

  /** For allstop/testing: kills the worker that runs, or next begins, a certain function. */
  orderKill(order: KillOrder): void {
    this.#killOrders.add(order, this.#slots);
  }

  withdrawKill(order: KillOrder): void {
    this.#killOrders.delete(order);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#clearRestarts();
    const gone = new Promise<void>((resolve) => {
      this.#onAllGone = resolve;
    });
    for (const slot of this.#slots) slot.kill(new FailedPreconditionError('The cluster is closed'));
    this.#checkAllGone();
    await gone;
  }

  /**
   * Feeds idle workers at once, and busy ones in a moment, when more may be queued for one message.
   */
  #feedIdle(): void {
    let hasWork = true;
    for (const slot of this.#slots) {
      this.#prepare(slot);
      if (hasWork && slot.isIdle) {
        hasWork = this.#feed(slot);
        slot.flush();
      }
    }
    // One worker may have been sent the whole queue, and its functions may run longer than
    // expected.
    const isUneven = (): boolean =>
      this.#slots.some(({ isIdle }) => isIdle) && this.#slots.some(({ running }) => running > 1);
    if (this.#isFeedAllDue || !(hasWork || isUneven())) return;
    this.#isFeedAllDue = true;
    setImmediate(() => {
      this.#isFeedAllDue = false;
      this.#feedAll();
    });
  }

  /**
   * Feeds all workers. A worker that stays idle gets half of the closures that the fullest
   * worker has not started.
   */
  #feedAll(): void {
    for (const slot of this.#slots) this.#prepare(slot);
    let hasWork = true;
    for (const slot of this.#slots) {
      if (!hasWork || !slot.isReady) continue;
      hasWork = this.#feed(slot);
      slot.flush();
    }
    if (hasWork) return;
    for (const slot of this.#slots) {
      if (!slot.isIdle) continue;
      const fullest = this.#slots.reduce((most, each) =>
        each.running > most.running ? each : most,
      );
      if (fullest.running < 2) return;
      const half = Math.ceil((fullest.running - 1) / 2);
      const back = fullest.recallSome(half);
      if (back.length === 0) return;
      for (const closure of back) this.#host.returned(closure, false);
      this.#feed(slot);
      slot.flush();
    }
  }

  #prepare(slot: WorkerSlot): void {
    if (!slot.isLoaded) return;
    for (;;) {
      const closure = this.#host.takeTagged(slot.index);
      if (closure === undefined || closure.work.kind === 'call') return;
      slot.prepare(closure, closure.work);
    }
  }

  /** @returns false if no closure is queued any more */
  #feed(slot: WorkerSlot): boolean {
    if (!slot.isReady) return true;
    let batch = 0;
    while (
      slot.running === 0 ||
      (slot.canQueue && slot.expectedUs < WORKER_AHEAD_US && batch < CLAIMS)
    ) {
      const closure = this.#host.take();
      if (closure === undefined) return false;
      if (closure.work.kind !== 'call') continue;
      const { work } = closure;
      slot.add(closure, work, this.#durations.of(work.name) ?? UNMEASURED_US);
      this.#killOrders.onAdded(slot, closure);
      batch += 1;
    }
    return true;
  }

  #startSlot(slot: WorkerSlot): void {
    try {
      slot.start();
    } catch (error) {
      this.#fail(
        new UnavailableError(`A worker cannot be started: ${messageOf(error)}`, { cause: error }),
      );
    }
  }

  #onGone(slot: WorkerSlot, { cause, wasKilled, running }: Death): void {
    this.#killOrders.onGone(slot, cause);
    if (this.#isClosing) {
      this.#checkAllGone();
      return;
    }
    // A cluster that has failed or was stopped runs nothing more: the worker is not replaced.
    if (this.#failure !== undefined || this.#host.coordinator.shouldStop()) return;
    slot.restarts += 1;
    const { index } = slot;
    const deaths = wasKilled ? 0 : (this.#deaths[index] as number) + 1;
    this.#deaths[index] = deaths;
    if (!wasKilled) this.#deathsInARow += 1;
    if (this.#deathsInARow > MAX_DEATHS * this.#slots.length) {
      const what = running === undefined ? '' : `, running '${running}'`;
      const text = `Giving up: workers died ${this.#deathsInARow} times without a result. Last: ${cause.message}${what}`;
      this.#fail(new UnavailableError(text, { cause }));
      return;
    }
    const delay =
      deaths < 2
        ? 0
        : Math.min(FIRST_RESTART_DELAY_MS * 2 ** (deaths - 2), LONGEST_RESTART_DELAY_MS);
    const timer = new Timer(delay, () => {
      this.#restarts.delete(timer);
      if (!this.#host.coordinator.shouldStop()) this.#startSlot(slot);
    });
    this.#restarts.add(timer);
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#clearRestarts();
    this.#host.failed(error);
  }

  #clearRestarts(): void {
    for (const timer of this.#restarts) timer.clear();
    this.#restarts.clear();
  }

  /**
   * Sends the stop record to all processes. The process that requested the stop needs it as answer.
   */
  #sendStop(): void {
    const message = stopMessage(this.#host.coordinator);
    for (const slot of this.#slots) slot.post([TO_WORKER.stop, message]);
  }

  #checkAllGone(): void {
    if (this.#slots.every(({ isAlive }) => !isAlive)) this.#onAllGone?.();
  }
}

function importError(module: URL, error: unknown): Error {
  const text = `The module ${module.href} cannot be imported: ${messageOf(error)}`;
  return new UnavailableError(text, { cause: error });
}
