/**
 * Workers of this machine: who gets which closure, and who takes a dead one's place.
 *
 * A closure goes to a worker that is idle. Where functions are short, so that handing them
 * over takes longer than running them, a worker gets up to AHEAD_US of them in advance, as
 * one message; those that it has not started can be taken back at any time, and are when
 * another has nothing to do.
 */

import { Timer } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { ReadinessReport } from '../../errors/readiness-report.ts';
import type { Closure } from '../closures/closure.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../closures/strategy.ts';
import { CLAIMS, TO_WORKER } from '../worker/protocol.ts';
import { applyStop, stopMessage } from '../worker/stop-relay.ts';
import type { Isolation, WorkerName } from './channel.ts';
import { FunctionDurations } from './function-durations.ts';
import { WorkerSlot } from './worker-slot.ts';

/** A worker has so much to do in advance, as far as that can be told. */
const AHEAD_US = 1_000;
/** After so many deaths of each, without a result of any between them, no worker will live. */
const MAX_DEATHS = 10;
const FIRST_DELAY_MS = 50;
const LONGEST_DELAY_MS = 2_000;

export type PoolSettings = {
  module: URL;
  workers: number;
  isolation: Isolation;
  /** What all of them are, if each is not a task of its own. */
  task?: WorkerName;
};

export class WorkerPool implements Engine {
  readonly sharesMemory: boolean;
  readonly #host: StrategyHost;
  readonly #slots: WorkerSlot[];
  #functions: string[] | undefined;
  readonly #durations = new FunctionDurations();
  /** Deaths in a row, by worker, and of all. */
  readonly #deaths: number[];
  #deathsInARow = 0;
  readonly #restarts = new Set<Timer>();
  #failure: Error | undefined;
  #isClosing = false;
  #onAllGone: (() => void) | undefined;
  #isPumpDue = false;
  #isFillDue = false;

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
            onFree: () => this.#fill(),
            onFunctions: (names) => {
              this.#functions = names;
            },
            onImportFailed: (_slot, error) => this.#fail(importError(module, error)),
            onGone: (slot, cause, wasKilled) => this.#onGone(slot, cause, wasKilled),
            onStop: (message) => applyStop(this.#host.coordinator, message),
            onResult: (slot, name, us) => {
              this.#deaths[slot.index] = 0;
              this.#deathsInARow = 0;
              this.#durations.measure(name, us);
            },
          },
          task,
        ),
    );
    for (const slot of this.#slots) this.#startSlot(slot);
    if (isolation === 'process') {
      host.coordinator.signal.addEventListener('abort', () => this.#tellStop());
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
    const engine =
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
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  cancel(closure: Closure, cancellation: Cancellation): void {
    for (const slot of this.#slots) if (slot.cancel(closure, cancellation)) return;
  }

  /** Whether it was not started, and now never will be. */
  recall(closure: Closure): boolean {
    return this.#slots.some((slot) => slot.recall(closure));
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

  /** Idle workers at once; busy ones in a moment, when there may be more to send them. */
  #pump(): void {
    let hasWork = true;
    for (const slot of this.#slots) {
      this.#prepare(slot);
      if (hasWork && slot.isIdle) {
        hasWork = this.#feed(slot);
        slot.flush();
      }
    }
    // One may have got it all, and what is expected to be short may be long.
    const isUneven = (): boolean =>
      this.#slots.some(({ isIdle }) => isIdle) && this.#slots.some(({ running }) => running > 1);
    if (this.#isFillDue || !(hasWork || isUneven())) return;
    this.#isFillDue = true;
    setImmediate(() => {
      this.#isFillDue = false;
      this.#fill();
    });
  }

  /** Everybody gets what he can take, and who has nothing gets something of another's. */
  #fill(): void {
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
      const back = fullest.takeBack(half);
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

  /** False: nothing is left in line. */
  #feed(slot: WorkerSlot): boolean {
    if (!slot.isReady) return true;
    let batch = 0;
    while (slot.running === 0 || (slot.canQueue && slot.expectedUs < AHEAD_US && batch < CLAIMS)) {
      const closure = this.#host.take();
      if (closure === undefined) return false;
      if (closure.work.kind !== 'call') continue;
      const { work } = closure;
      slot.add(closure, work, this.#durations.of(work.name) ?? AHEAD_US);
      batch += 1;
    }
    return true;
  }

  #startSlot(slot: WorkerSlot): void {
    try {
      slot.start();
    } catch (error) {
      this.#fail(new UnavailableError(`A worker cannot be started`, { cause: error }));
    }
  }

  #onGone(slot: WorkerSlot, cause: Error, wasKilled: boolean): void {
    if (this.#isClosing) {
      this.#checkAllGone();
      return;
    }
    // A cluster that has failed, or was stopped, takes no more work.
    if (this.#failure !== undefined || this.#host.coordinator.shouldStop()) return;
    slot.restarts += 1;
    const { index } = slot;
    const deaths = wasKilled ? 0 : (this.#deaths[index] as number) + 1;
    this.#deaths[index] = deaths;
    if (!wasKilled) this.#deathsInARow += 1;
    if (this.#deathsInARow > MAX_DEATHS * this.#slots.length) {
      const text = `Workers have died ${this.#deathsInARow} times in a row: ${cause.message}`;
      this.#fail(new UnavailableError(text, { cause }));
      return;
    }
    const delay = deaths < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (deaths - 2), LONGEST_DELAY_MS);
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

  /** Also whoever has asked for it: it waits for an answer. */
  #tellStop(): void {
    const message = stopMessage(this.#host.coordinator);
    for (const slot of this.#slots) slot.post([TO_WORKER.stop, message]);
  }

  #checkAllGone(): void {
    if (this.#slots.every(({ isAlive }) => !isAlive)) this.#onAllGone?.();
  }
}

function importError(module: URL, error: unknown): Error {
  const why = error instanceof Error ? error.message : String(error);
  return new UnavailableError(`The module ${module.href} cannot be imported: ${why}`, {
    cause: error,
  });
}
