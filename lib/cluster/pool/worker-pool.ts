/**
 * The workers on this machine: gives closures to them, and replaces those that die.
 *
 * A closure goes to an idle worker. When functions are so short that sending them takes longer
 * than running them, a worker thread is sent several in advance, as one message, up to
 * WORKER_AHEAD_US. Closures that it has not started are recalled when another worker is idle.
 */

import { debuglog } from 'node:util';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { EngineReadiness, ReadinessReport } from '../../errors/readiness-report.ts';
import type { Closure } from '../closures/closure.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../closures/strategy.ts';
import type { Definition } from '../variables/variable.ts';
import { CLAIMS, TO_WORKER } from '../worker/protocol.ts';
import { applyStop, stopMessage } from '../worker/stop-relay.ts';
import type { Isolation, WorkerName, WorkerOptions } from './channel.ts';
import { FunctionDurations } from './function-durations.ts';
import type { Death } from './slot-listener.ts';
import { StartLine } from './start-line.ts';
import { WorkerSlot } from './worker-slot.ts';

/** A worker is sent closures in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;
/**
 * The expected time of a function that was never measured: so long that nothing is sent after it.
 */
const UNMEASURED_US: number = WORKER_AHEAD_US;
/** The pool fails after this number of deaths per worker, if no worker has been ready in between. */
const MAX_STARTS = 10;
const FIRST_RESTART_DELAY_MS = 50;
const LONGEST_RESTART_DELAY_MS = 2_000;

const log = debuglog('allstop');

export type PoolSettings = WorkerOptions & {
  workers: number;
  isolation: Isolation;
  /** Set on a NATS node, where all workers are one task. Undefined: each worker is its own task. */
  task?: WorkerName;
  /** How many workers may start at the same time (no limit). */
  startTogether?: number;
};

export class WorkerPool implements Engine {
  readonly sharesMemory: boolean;
  readonly #host: StrategyHost;
  readonly #settings: PoolSettings;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  readonly #slots: WorkerSlot[];
  #functions: string[] | undefined;
  readonly #durations = new FunctionDurations();
  /** By worker: its deaths while it ran no function, since a function last ended on it. */
  readonly #deaths: number[];
  /** Deaths of workers that were never ready, since a worker was last ready. */
  #failedStarts = 0;
  /** A worker has been ready. */
  #wasReady = false;
  readonly #restarts = new Set<Timer>();
  readonly #starts: StartLine<WorkerSlot>;
  #failure: Error | undefined;
  #isClosing = false;
  #onAllGone: (() => void) | undefined;
  #isFeedIdleDue = false;
  #isFeedAllDue = false;

  constructor(host: StrategyHost, settings: PoolSettings) {
    const { workers, isolation, startTogether } = settings;
    this.#settings = settings;
    this.#concurrency = settings.concurrency ?? 1;
    this.#host = host;
    this.#starts = new StartLine(startTogether ?? Number.POSITIVE_INFINITY, (slot) => {
      if (!this.#host.coordinator.shouldStop()) this.#startSlot(slot);
    });
    this.sharesMemory = isolation === 'thread';
    this.#deaths = Array.from({ length: workers }, () => 0);
    this.#slots = Array.from({ length: workers }, (_, index) => this.#makeSlot(index));
    for (const slot of this.#slots) this.#starts.enter(slot);
    if (isolation === 'process') {
      host.coordinator.signal.addEventListener('abort', () => this.#sendStop());
    }
  }

  define(definition: Definition): void {
    for (const slot of this.#slots) slot.define(definition);
  }

  #makeSlot(index: number): WorkerSlot {
    const { isolation, task, ...options } = this.#settings;
    const host = this.#host;
    return new WorkerSlot({ index, name: task, isolation, options }, host, {
      onFree: (slot) => {
        if (slot.isLoaded) this.#starts.left(slot);
        this.#feedAll();
      },
      onReady: (slot) => {
        this.#failedStarts = 0;
        this.#wasReady = true;
        host.workerStarted(slot.info);
      },
      onStuck: (info) => host.workerStuck(info),
      onFunctions: (names) => {
        this.#functions = names;
      },
      onImportFailed: (_slot, error) => this.#fail(importError(options.module, error)),
      onGone: (slot, death) => {
        this.#starts.left(slot);
        this.#onGone(slot, death);
      },
      onStop: (message) => applyStop(host.coordinator, message),
      onResult: (slot, name, us) => {
        this.#deaths[slot.index] = 0;
        this.#durations.measure(name, us);
      },
    });
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

  get capacity(): number {
    return this.#slots.filter(({ isReady }) => isReady).length * this.#concurrency;
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

  /** `WorkerSlot.crash` of one worker. */
  crash(index: number): Promise<Error> | undefined {
    return this.#slots[index]?.crash();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#clearRestarts();
    const gone = new Promise<void>((resolve) => {
      this.#onAllGone = resolve;
    });
    const closed = new FailedPreconditionError('The cluster is closed');
    for (const slot of this.#slots) {
      if (slot.running > 0) slot.kill(closed);
      else slot.retire(closed);
    }
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
    // Each worker gets one function before any gets a second.
    for (let most = 1; hasWork && most <= this.#concurrency; most++) {
      for (const slot of this.#slots) {
        if (hasWork && slot.isReady) hasWork = this.#feed(slot, most);
      }
    }
    for (const slot of this.#slots) slot.flush();
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
      for (const closure of back) this.#host.returned(closure, 'sent');
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

  /**
   * Sends closures to a worker, as many as it should have; a suspect only if it has none.
   *
   * @param most - how many it may run at once
   * @returns false if no closure is queued any more
   */
  #feed(slot: WorkerSlot, most = 1): boolean {
    if (!slot.isReady) return true;
    let batch = 0;
    while (
      slot.hasRoom(most) ||
      (slot.canQueue && slot.expectedUs < WORKER_AHEAD_US && batch < CLAIMS)
    ) {
      if (slot.running > 0 && this.#host.isSuspectNext) return true;
      const closure = this.#host.take();
      if (closure === undefined) return false;
      if (closure.work.kind !== 'call') continue;
      const { work } = closure;
      slot.add(closure, work, this.#durations.of(work.name) ?? UNMEASURED_US);
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

  /** A death is charged to the function that ran; only workers that cannot start fail the pool. */
  #onGone(slot: WorkerSlot, { cause, wasKilled, wasReady, running }: Death): void {
    if (this.#isClosing) {
      this.#checkAllGone();
      return;
    }
    // A cluster that has failed or was stopped runs nothing more: the worker is not replaced.
    if (this.#failure !== undefined || this.#host.coordinator.shouldStop()) return;
    slot.restarts += 1;
    log('%s, running %s', cause.message, running === undefined ? 'no function' : `'${running}'`);
    this.#host.workerLost(slot.info, cause);
    const { index } = slot;
    const isCharged = wasKilled || running !== undefined;
    if (!isCharged) this.#deaths[index] = (this.#deaths[index] as number) + 1;
    if (!isCharged && !wasReady) this.#failedStarts += 1;
    // Setup functions that fail everywhere from the start will go on failing: the user wants to know.
    if (!this.#wasReady && this.#slots.every(({ hasFailedSetup }) => hasFailedSetup)) {
      this.#fail(cause);
      return;
    }
    if (this.#failedStarts > MAX_STARTS * this.#slots.length && this.capacity === 0) {
      const text = `Giving up: workers died ${this.#failedStarts} times before they were ready. Last: ${cause.message}`;
      this.#fail(new UnavailableError(text, { cause }));
      return;
    }
    const deaths = isCharged ? 0 : (this.#deaths[index] as number);
    const delay =
      deaths < 2
        ? 0
        : Math.min(FIRST_RESTART_DELAY_MS * 2 ** (deaths - 2), LONGEST_RESTART_DELAY_MS);
    const timer = new Timer(delay, () => {
      this.#restarts.delete(timer);
      this.#starts.enter(slot);
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
    this.#starts.close();
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
