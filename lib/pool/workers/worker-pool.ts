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
import type { Definition } from '../../cluster/variables/variable.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { StopArbiter } from '../../coordinator/stop-relay.ts';
import { tellBusyWorkers } from '../../coordinator/threads/busy-workers.ts';
import { clusterClosed } from '../../errors/cluster-closed.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import type { EngineReadiness, ReadinessReport } from '../../errors/readiness-report.ts';
import { hold, release } from '../../native/doorbell.ts';
import { leaveSpare, useSpare } from '../../values/to-thread.ts';
import type { Closure } from '../queue/closure.ts';
import type { Placement } from '../queue/lines/placement.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../queue/strategy.ts';
import { importError } from '../worker/module/import-error.ts';
import { CLAIMS } from '../worker/protocol.ts';
import { Availability, isShortage } from './availability.ts';
import type { Isolation, WorkerName, WorkerOptions } from './channel.ts';
import { FunctionDurations } from './function-durations.ts';
import { type Elastic, PoolSize, type PoolSizeListener } from './pool-size.ts';
import type { Death } from './slot-listener.ts';
import { StartLine } from './start-line.ts';
import { WorkerSlot } from './worker-slot.ts';

/** A worker is sent closures in advance until they are expected to take this long. */
const WORKER_AHEAD_US = 1_000;
/**
 * The expected time of a function that was never measured: so long that nothing is sent after it.
 */
const UNMEASURED_US: number = WORKER_AHEAD_US;
/** A pool of which no worker was ever ready fails after this number of deaths per worker. */
const MAX_STARTS = 10;
const FIRST_RESTART_DELAY_MS = 50;
const LONGEST_RESTART_DELAY_MS = 2_000;

const log = debuglog('allstop');

export type PoolSettings = WorkerOptions & {
  /** The number of workers at first. */
  workers: number;
  /** Undefined: the number of workers stays `workers`, until `resize`. */
  elastic?: Elastic | undefined;
  isolation: Isolation;
  /** Set on a NATS node, where all workers are one task. Undefined: each worker is its own task. */
  task?: WorkerName;
  /** How many workers may start at the same time (no limit). */
  startTogether?: number;
  /** Asked before a worker starts, and when it has imported the module: it must have no other. */
  hasModule?: () => boolean;
  /**
   * Calls are rejected when no worker has been ready for so long, and one could not be started.
   * Undefined: never, since other workers may take them.
   */
  unavailableAfterMs?: number | undefined;
  /**
   * No worker has ever been ready, and the setup function of each has failed: called with each
   * such failure. The workers are started again and again. Undefined: the pool fails.
   */
  onSetupFailed?: (error: Error) => void;
};

const NEVER_STARTED = {
  wasKilled: false,
  wasRetired: false,
  wasReady: false,
  running: undefined,
} as const;

export class WorkerPool implements Engine {
  readonly sharesMemory: boolean;
  readonly #host: StrategyHost;
  readonly #settings: PoolSettings;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  /** By index. */
  #slots: WorkerSlot[] = [];
  readonly #size: PoolSize;
  /** Slots that were removed, with threads that cannot be ended. */
  #departed: WorkerSlot[] = [];
  /** The restarts of slots that were removed. */
  #pastRestarts = 0;
  /** How often a worker was replaced between functions. */
  #recycled = 0;
  /** The last argument of `setNeeded`. The pool holds the event loop of this thread meanwhile. */
  #isNeeded = true;
  #functions: readonly string[] | undefined;
  readonly #durations = new FunctionDurations();
  /** Deaths of workers that were never ready, until one is; undefined from then on. */
  #failedStarts: number | undefined = 0;
  readonly #availability: Availability;
  /** The slots whose worker is started again in a moment. */
  readonly #restarts = new Map<WorkerSlot, Timer>();
  readonly #starts: StartLine<WorkerSlot>;
  /** Undefined: the workers are threads, which have this process's coordinator. */
  readonly #stops: StopArbiter | undefined;
  #failure: Error | undefined;
  /** `leave` was called: workers that start later hear of it, too. */
  #isLeaving = false;
  #isClosing = false;
  #onAllGone: (() => void) | undefined;
  /** The callers of `crash`, who wait until the worker of that slot is gone. */
  #crashed: { slot: WorkerSlot; tell: (cause: Error) => void }[] = [];
  #isFeedIdleDue = false;
  #isFeedAllDue = false;

  constructor(host: StrategyHost, settings: PoolSettings) {
    const { workers, isolation, startTogether } = settings;
    const { unavailableAfterMs = Number.POSITIVE_INFINITY } = settings;
    this.#settings = settings;
    this.#concurrency = settings.concurrency ?? 1;
    this.#host = host;
    this.#starts = new StartLine(startTogether ?? Number.POSITIVE_INFINITY, (slot) => {
      if (!this.#host.coordinator.shouldStop()) this.#startSlot(slot);
    });
    this.#availability = new Availability(unavailableAfterMs, () => this.#feedAll());
    this.sharesMemory = isolation === 'thread';
    this.#size = new PoolSize(this.#sizeListener(), settings.elastic);
    for (let index = 0; index < workers; index++) this.#add();
    if (isolation === 'process') {
      this.#stops = new StopArbiter(host.coordinator, (stop) => {
        for (const slot of this.#slots) slot.post({ kind: 'stop', stop });
      });
    }
    const { signal } = host.coordinator;
    signal.addEventListener('abort', () => {
      tellBusyWorkers(attachmentOf(host.coordinator));
      this.#size.close();
      this.#size.fail(new CancelledError('The cluster was stopped', { cause: signal.reason }));
    });
    useSpare(this);
    hold(); // last: a constructor that throws would hold for ever
  }

  /** Resolves when that many workers are ready. */
  resize(workers: number): Promise<void> {
    return this.#size.resize(workers);
  }

  #sizeListener(): PoolSizeListener {
    const slots = (): readonly WorkerSlot[] => this.#slots;
    return {
      get slots() {
        return slots();
      },
      add: (index) => this.#add(index),
      letGo: (slot) => {
        if (slot.isAlive) slot.retire(new CancelledError('The worker is not needed any more'));
        else this.#remove(slot);
      },
    };
  }

  #add(index = this.#lowestFree()): void {
    const slot = this.#makeSlot(index);
    this.#slots = [...this.#slots, slot].toSorted((one, other) => one.index - other.index);
    this.#starts.enter(slot);
  }

  #lowestFree(): number {
    const used = new Set(this.#slots.map(({ index }) => index));
    let index = 0;
    while (used.has(index)) index += 1;
    return index;
  }

  /** Removes a slot that has no worker any more. */
  #remove(slot: WorkerSlot): void {
    this.#restarts.get(slot)?.clear();
    this.#restarts.delete(slot);
    this.#starts.leave(slot);
    this.#slots = this.#slots.filter((each) => each !== slot);
    this.#pastRestarts += slot.restarts;
    if (slot.stuck.length > 0) this.#departed.push(slot);
    while (this.#host.takeTagged(slot.index) !== undefined); // nobody will make these data sets
    this.#size.removed(slot);
    this.#host.changed();
  }

  forget(id: number): void {
    for (const slot of this.#slots) slot.forget(id);
  }

  define(...definitions: Definition[]): void {
    for (const slot of this.#slots) slot.define(...definitions);
  }

  #makeSlot(index: number): WorkerSlot {
    const { isolation, task, elastic: _, ...options } = this.#settings;
    const host = this.#host;
    return new WorkerSlot({ index, name: task, isolation, options }, host, {
      onFree: (slot) => {
        if (slot.isLoaded) this.#starts.left(slot);
        this.#feedAll();
      },
      onReady: (slot) => {
        this.#failedStarts = undefined;
        this.#availability.workerIsReady();
        host.workerStarted(slot.info);
        this.#size.check();
      },
      onStuck: (info) => host.workerStuck(info),
      onLoaded: (loaded, names) => {
        this.#functions = names;
        if (this.#isLeaving) loaded.leave();
        if (this.#lacksModule()) loaded.kill(new UnavailableError('The module file has changed'));
      },
      onImportFailed: (slot, error, isWhole) => {
        const whole = isWhole ? (error as Error) : importError(options.module, error);
        if (this.#failedStarts === undefined) slot.startHasFailed(whole);
        else this.#fail(whole);
      },
      onGone: (slot, death) => {
        this.#starts.left(slot);
        this.#onGone(slot, death);
        this.#tellCrashed(slot, death.cause);
      },
      onStop: (stop) => this.#stops?.hear(stop),
      onResult: (slot, name, us) => {
        slot.deaths = 0;
        this.#durations.measure(name, us);
      },
    });
  }

  get functions(): readonly string[] | undefined {
    return this.#functions;
  }

  get indexes(): number[] {
    const remain = this.#slots.filter(({ isLoaded, isEnding }) => isLoaded && !isEnding);
    return remain.map(({ index }) => index);
  }

  get workers(): WorkerInfo[] {
    const stuckIn = (slot: WorkerSlot): WorkerInfo[] => slot.stuck.map(({ info }) => info);
    const here = this.#slots.flatMap((slot) => [slot.info, ...stuckIn(slot)]);
    return [...here, ...this.#departed.flatMap(stuckIn)];
  }

  get capacity(): number {
    return this.#slots.filter(({ isReady }) => isReady).length * this.#concurrency;
  }

  whyNowhere({ worker, resources }: Placement): string | undefined {
    if (worker !== undefined && !this.#size.mayHave(worker)) return this.#size.text;
    if (resources === undefined) return undefined;
    return 'workers of this machine have no resources; `allstop worker --resources` gives them';
  }

  report(): ReadinessReport {
    const tasks = this.#size.staying.map(({ readiness }) => readiness);
    const ready = this.#failure === undefined && tasks.every((task) => task.ready);
    const engine: EngineReadiness =
      this.#failure === undefined
        ? { phase: 'ready' }
        : { phase: 'failed', cause: this.#failure.message };
    return { ready, engine, tasks };
  }

  stats(): Record<string, number> {
    const restarts = this.#slots.reduce((sum, slot) => sum + slot.restarts, this.#pastRestarts);
    return { restarts, recycled: this.#recycled };
  }

  setNeeded(needed: boolean): void {
    if (needed === this.#isNeeded) return;
    this.#isNeeded = needed;
    if (needed) hold();
    else release();
  }

  wake(): void {
    if (this.#isFeedIdleDue) return;
    // Before the flag: a stack overflow may throw here.
    queueMicrotask(() => {
      this.#isFeedIdleDue = false;
      this.#feedIdle();
    });
    this.#isFeedIdleDue = true;
  }

  cancel(closure: Closure, cancellation: Cancellation): void {
    for (const slot of this.#slots) if (slot.cancel(closure, cancellation)) return;
  }

  /** @returns whether the closure was recalled: it was here, and no worker had started it */
  recall(closure: Closure): boolean {
    return this.#slots.some((slot) => slot.recall(closure));
  }

  /**
   * Ends a worker as somebody outside would, for `allstop/testing`.
   *
   * @returns how the worker has ended, when it is gone; undefined if there is none
   */
  crash(index: number): Promise<Error> | undefined {
    const slot = this.#slots.find((each) => each.index === index);
    if (slot?.isAlive !== true) return undefined;
    slot.crash();
    return new Promise((tell) => {
      this.#crashed.push({ slot, tell });
    });
  }

  #tellCrashed(slot: WorkerSlot, cause: Error): void {
    const told = this.#crashed.filter((each) => each.slot === slot);
    this.#crashed = this.#crashed.filter((each) => each.slot !== slot);
    for (const { tell } of told) tell(cause);
  }

  leave(): void {
    this.#isLeaving = true;
    for (const slot of this.#slots) slot.leave();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#size.close();
    this.#size.fail(new CancelledError('The cluster was closed'));
    this.#clearRestarts();
    const gone = new Promise<void>((resolve) => {
      this.#onAllGone = resolve;
    });
    const closed = clusterClosed();
    for (const slot of this.#slots) {
      if (slot.running > 0) slot.kill(closed);
      else slot.retire(closed);
    }
    this.#checkAllGone();
    await gone;
    leaveSpare(this);
    this.setNeeded(false);
  }

  /**
   * Feeds idle workers at once, and busy ones in a moment, when more may be queued for one message.
   */
  #feedIdle(): void {
    if (this.#refuseAll()) return;
    let hasWork = true;
    for (const slot of this.#slots) {
      this.#prepare(slot);
      if ((hasWork || this.#host.hasPlaced) && slot.isIdle) {
        hasWork = this.#feed(slot) && hasWork;
        slot.flush();
      }
    }
    // One worker may have been sent the whole queue, and its functions may run longer than
    // expected.
    const isUneven = (): boolean =>
      this.#slots.some(({ isIdle }) => isIdle) && this.#slots.some(({ running }) => running > 1);
    const hasMore = hasWork || this.#size.lacks(this.#host.placedOn);
    if (this.#isFeedAllDue || !(hasMore || isUneven())) return;
    this.#isFeedAllDue = true;
    setImmediate(() => {
      this.#isFeedAllDue = false;
      this.#feedAll();
    });
  }

  /** Feeds all workers. */
  #feedAll(): void {
    if (this.#refuseAll()) return;
    for (const slot of this.#slots) this.#prepare(slot);
    let hasWork = true;
    // Each worker gets one function before any gets a second.
    for (let most = 1; most <= this.#concurrency; most++) {
      for (const slot of this.#slots) {
        if (!(hasWork || this.#host.hasPlaced)) break;
        if (slot.isReady) hasWork = this.#feed(slot, most) && hasWork;
      }
    }
    for (const slot of this.#slots) slot.flush();
    this.#size.growTo(this.#host.placedOn);
    if (hasWork) {
      this.#size.grow(Math.ceil(this.#host.waiting / this.#concurrency));
      return;
    }
    this.#rebalance();
    this.#size.shrinkLater();
  }

  /** @returns whether no worker can be started: then every queued closure fails */
  #refuseAll(): boolean {
    const { error } = this.#availability;
    if (error === undefined) return false;
    for (const slot of this.#slots) {
      for (;;) {
        const closure = this.#host.take(slot);
        if (closure === undefined) break;
        this.#host.ended(closure, { state: 'failed', value: error });
      }
    }
    return true;
  }

  /** A worker that is idle gets half of what the fullest worker has not started. */
  #rebalance(): void {
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
      slot.prepare(closure.work);
    }
  }

  /**
   * Sends closures to a worker, as many as it should have; a suspect only if it has none.
   *
   * @param most - how many it may run at once
   * @returns false if no closure is queued any more that the worker may run
   */
  #feed(slot: WorkerSlot, most = 1): boolean {
    if (!slot.isReady) return true;
    let batch = 0;
    while (
      slot.hasRoom(most) ||
      (slot.canQueue && slot.expectedUs < WORKER_AHEAD_US && batch < CLAIMS)
    ) {
      if (slot.running > 0 && this.#host.isSuspectNext(slot)) return true;
      const closure = this.#host.take(slot);
      if (closure === undefined) return false;
      if (closure.work.kind !== 'call') continue;
      const { work } = closure;
      slot.add(closure, work, this.#durations.of(work.name) ?? UNMEASURED_US);
      batch += 1;
    }
    return true;
  }

  #lacksModule(): boolean {
    return this.#settings.hasModule?.() === false;
  }

  #startSlot(slot: WorkerSlot): void {
    if (this.#lacksModule()) {
      this.#starts.left(slot);
      return;
    }
    try {
      slot.start();
    } catch (error) {
      // Node's message may end with a full stop; that of a phase has none.
      const why = `A worker cannot be started: ${messageOf(error).replace(/\.$/, '')}`;
      const cause = new UnavailableError(why, { cause: error });
      slot.enter('lost', why);
      if (this.#failedStarts !== undefined && !isShortage(error)) return this.#fail(cause);
      // `connect` may not have returned the engine.
      queueMicrotask(() => {
        this.#starts.left(slot);
        if (slot.isAlive || !this.#slots.includes(slot)) return;
        this.#onGone(slot, { cause, ...NEVER_STARTED });
      });
    }
  }

  /** A death is charged to the function that ran; only workers that cannot start fail the pool. */
  #onGone(slot: WorkerSlot, death: Death): void {
    const { cause, wasKilled, wasRetired, wasReady, running } = death;
    if (this.#isClosing) {
      this.#checkAllGone();
      return;
    }
    // A cluster that has failed or was stopped runs nothing more: the worker is not replaced.
    if (this.#failure !== undefined || this.#host.coordinator.shouldStop()) return;
    if (wasRetired) {
      if (this.#size.isLeaving(slot)) this.#remove(slot);
      else {
        this.#recycled += 1;
        this.#starts.enter(slot);
      }
      return;
    }
    slot.restarts += 1;
    log('%s, running %s', cause.message, running === undefined ? 'no function' : `'${running}'`);
    this.#host.workerLost(slot.info, cause);
    if (this.#size.isLeaving(slot)) {
      this.#remove(slot);
      return;
    }
    if (!wasReady) this.#size.undo(cause);
    if (!this.#slots.includes(slot)) return;
    const isCharged = wasKilled || running !== undefined;
    if (!isCharged) slot.deaths += 1;
    const { onSetupFailed } = this.#settings;
    const isRetried = onSetupFailed !== undefined && slot.readiness.phase === 'setup-failed';
    if (!wasReady && !isCharged && this.capacity === 0) this.#availability.startHasFailed(cause);
    if (this.#failedStarts !== undefined) {
      if (!isCharged && !wasReady && !isRetried && !isShortage(cause)) this.#failedStarts += 1;
      // What fails everywhere from the start will go on failing: the user wants to know.
      if (this.#slots.every(({ hasFailedSetup }) => hasFailedSetup)) {
        if (onSetupFailed === undefined) return this.#fail(cause);
        onSetupFailed(cause);
      }
      if (this.#failedStarts > MAX_STARTS * this.#slots.length) {
        const text = `Giving up: workers died ${this.#failedStarts} times before they were ready. Last: ${cause.message}`;
        return this.#fail(new UnavailableError(text, { cause }));
      }
    }
    const deaths = isCharged ? 0 : slot.deaths;
    const delay =
      deaths < 2
        ? 0
        : Math.min(FIRST_RESTART_DELAY_MS * 2 ** (deaths - 2), LONGEST_RESTART_DELAY_MS);
    const timer = new Timer(delay, () => {
      this.#restarts.delete(slot);
      this.#starts.enter(slot);
    });
    this.#restarts.set(slot, timer);
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#size.close();
    this.#size.fail(error);
    this.#clearRestarts();
    this.#host.failed(error);
  }

  #clearRestarts(): void {
    this.#availability.close();
    for (const timer of this.#restarts.values()) timer.clear();
    this.#restarts.clear();
    this.#starts.close();
  }

  #checkAllGone(): void {
    if (this.#slots.every(({ isAlive }) => !isAlive)) this.#onAllGone?.();
  }
}
