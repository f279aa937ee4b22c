/** The workers on this machine: starts them, and replaces those that die. */

import { attachmentOf } from '../../coordinator/attachment.ts';
import { StopArbiter } from '../../coordinator/stop-relay.ts';
import { tellBusyWorkers } from '../../coordinator/threads/busy-workers.ts';
import {
  CancelledError,
  cancelledByClose,
  poolClosed,
  UnavailableError,
} from '../../errors/errors.ts';
import type { ReadinessReport } from '../../errors/phases.ts';
import { log } from '../../events/spine.ts';
import { hold, release } from '../../native/native.ts';
import { leaveSpare, useSpare } from '../../values/to-thread.ts';
import type { Call } from '../queue/call.ts';
import type { Placement } from '../queue/call-lines.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../queue/strategy.ts';
import type { WorkerResource } from '../worker/messages.ts';
import type { Definition } from '../worker/variables.ts';
import { Dispatcher, type Elastic, isShortage, Slots, StartLine } from './slots.ts';
import { type Death, type SlotSettings, WorkerSlot } from './worker-slot.ts';

/** A pool of which no worker was ever ready fails after this number of deaths per worker. */
const MAX_STARTS = 10;
const FIRST_RESTART_DELAY_MS = 50;
const LONGEST_RESTART_DELAY_MS = 2_000;

export type PoolSettings = SlotSettings & {
  /** The number of workers at first. */
  workers: number;
  /** Undefined: the number of workers stays `workers`, until `resize`. */
  elastic?: Elastic | undefined;
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

export class WorkerPool implements Engine {
  readonly sharesMemory: boolean;
  readonly #host: StrategyHost;
  readonly #settings: PoolSettings;
  /** How many asynchronous functions run at once on one worker. */
  readonly #concurrency: number;
  readonly #slots: Slots;
  readonly #dispatcher: Dispatcher;
  readonly #starts: StartLine;
  /** Slots that were removed, with threads that cannot be ended. */
  readonly #departed: WorkerSlot[] = [];
  /** The restarts of slots that were removed. */
  #pastRestarts = 0;
  /** How often a worker was replaced between functions. */
  #recycled = 0;
  /** The last argument of `setNeeded`. The pool holds the event loop of this thread meanwhile. */
  #isNeeded = true;
  #functions: readonly string[] | undefined;
  /** Deaths of workers that were never ready, until one is; undefined from then on. */
  #failedStarts: number | undefined = 0;
  /** Undefined: the workers are threads, which have this process's coordinator. */
  readonly #stops: StopArbiter | undefined;
  #failure: Error | undefined;
  /** `leave` was called: workers that start later hear of it, too. */
  #isLeaving = false;
  #isClosing = false;

  constructor(host: StrategyHost, settings: PoolSettings) {
    const { workers, isolation, startTogether = Number.POSITIVE_INFINITY } = settings;
    this.#settings = settings;
    this.#concurrency = settings.concurrency ?? 1;
    this.#host = host;
    this.#starts = new StartLine(startTogether, (slot) => {
      if (!this.#host.coordinator.shouldStop()) this.#start(slot);
    });
    this.sharesMemory = isolation === 'thread';
    this.#slots = new Slots({
      poolName: host.coordinator.name,
      elastic: settings.elastic,
      starts: this.#starts,
      make: (index) => this.#makeSlot(index),
      removed: (slot) => {
        this.#pastRestarts += slot.info.restarts;
        if (slot.stuck.size > 0) this.#departed.push(slot);
        host.changed();
      },
    });
    const { unavailableAfterMs = Number.POSITIVE_INFINITY } = settings;
    this.#dispatcher = new Dispatcher(host, this.#slots, this.#concurrency, unavailableAfterMs);
    for (let index = 0; index < workers; index++) this.#slots.add();
    if (isolation === 'process') {
      this.#stops = new StopArbiter(host.coordinator, (stop) => {
        for (const { worker } of this.#slots.all) worker?.post({ kind: 'stop', stop });
      });
    }
    const { signal } = host.coordinator;
    signal.addEventListener('abort', () => {
      tellBusyWorkers(attachmentOf(host.coordinator));
      const text = `The ${host.coordinator.name} was stopped`;
      this.#slots.end(new CancelledError(text, { cause: signal.reason }));
    });
    useSpare(this);
    hold(); // last: a constructor that throws would hold for ever
  }

  #makeSlot(index: number): WorkerSlot {
    const host = this.#host;
    return new WorkerSlot(index, this.#settings, host, {
      onFree: () => this.#dispatcher.feedAll(),
      onReady: (slot, isFirst) => {
        this.#failedStarts = undefined;
        this.#dispatcher.availability.workerIsReady();
        if (isFirst) host.tell('workerStarted', slot.info);
        this.#slots.check();
      },
      onLoaded: (slot, names) => {
        this.#functions = names;
        this.#starts.left(slot);
        if (this.#isLeaving) slot.leave();
        if (this.#lacksModule) slot.kill(new UnavailableError('The module file has changed'));
      },
      onImportFailed: (slot, error) => {
        if (this.#failedStarts === undefined) slot.kill(error);
        else this.#fail(error);
      },
      onGone: (slot, death) => {
        this.#starts.left(slot);
        this.#onGone(slot, death);
      },
      onStop: (stop) => this.#stops?.hear(stop),
      onResult: (name, us) => this.#dispatcher.feeding.measure(name, us),
    });
  }

  // ---------------------------------------------------------------- what the rules and users call

  /** Resolves when that many workers are ready. */
  resize(workers: number): Promise<void> {
    return this.#slots.resize(workers);
  }

  wake(): void {
    this.#dispatcher.wake();
  }

  forget(id: number): void {
    for (const slot of this.#slots.all) slot.forget(id);
  }

  prepare(resource: WorkerResource): void {
    for (const slot of this.#slots.all) if (slot.isServing) slot.prepare(resource);
  }

  define(...definitions: Definition[]): void {
    for (const slot of this.#slots.all) slot.define(definitions);
  }

  get functions(): readonly string[] | undefined {
    return this.#functions;
  }

  get workers(): WorkerInfo[] {
    const here = this.#slots.all.flatMap((slot) => [slot.info, ...slot.stuck.values()]);
    return [...here, ...this.#departed.flatMap(({ stuck }) => [...stuck.values()])];
  }

  get capacity(): number {
    return this.#slots.ready.length * this.#concurrency;
  }

  whyNowhere({ worker, resources }: Placement): string | undefined {
    const why = worker === undefined ? undefined : this.#slots.whyNowhere(worker);
    if (why !== undefined || resources === undefined) return why;
    return 'workers of this machine have no resources; `allstop worker --resources` gives them';
  }

  whyBlocked(placement: Placement | undefined): string | undefined {
    const { ready } = this.#slots;
    if (ready.length === 0) return 'no worker is ready';
    const fits = placement === undefined || ready.some(({ index }) => placement.fits(index, {}));
    return fits ? undefined : `${placement.text} is not ready`;
  }

  report(): ReadinessReport {
    const failure = this.#failure;
    const tasks = this.#slots.staying.map(({ readiness }) => readiness);
    return failure === undefined
      ? { ready: tasks.every(({ ready }) => ready), engine: { phase: 'ready' }, tasks }
      : { ready: false, engine: { phase: 'failed', cause: failure.message }, tasks };
  }

  stats(): Record<string, number> {
    const here = this.#slots.all.map(({ info }) => info.restarts);
    const restarts = here.reduce((sum, each) => sum + each, this.#pastRestarts);
    return { restarts, recycled: this.#recycled };
  }

  setNeeded(needed: boolean): void {
    if (needed === this.#isNeeded) return;
    this.#isNeeded = needed;
    if (needed) hold();
    else release();
  }

  cancel(call: Call, cancellation: Cancellation): void {
    this.#slots.all.some(({ worker }) => worker?.cancel(call, cancellation));
  }

  /** @returns whether the call was recalled: it was here, and no worker had started it */
  recall(call: Call): boolean {
    return this.#slots.all.some(({ worker }) => worker?.recall(call));
  }

  /**
   * Ends a worker as somebody outside would, for `allstop/testing`: unlike `kill` of its slot, this is
   * a failure of the worker.
   *
   * @returns how the worker has ended, when it is gone; undefined if there is none
   */
  crash(index: number): Promise<Error> | undefined {
    const worker = this.#slots.all.find((slot) => slot.index === index)?.worker;
    worker?.channel.kill();
    return worker?.gone;
  }

  leave(): void {
    this.#isLeaving = true;
    for (const slot of this.#slots.all) slot.leave();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const { name } = this.#host.coordinator;
    this.#slots.end(cancelledByClose(name));
    this.#startNothing();
    const closed = poolClosed(name);
    const gone = this.#slots.all.flatMap(({ worker }) => worker?.gone ?? []);
    for (const slot of this.#slots.all) {
      if (slot.worker !== undefined && slot.worker.running > 0) slot.kill(closed);
      else slot.retire(closed);
    }
    await Promise.all(gone);
    leaveSpare(this);
    this.setNeeded(false);
  }

  // ---------------------------------------------------------------- starts and deaths

  get #lacksModule(): boolean {
    return this.#settings.hasModule?.() === false;
  }

  #start(slot: WorkerSlot): void {
    if (this.#lacksModule) return this.#starts.left(slot);
    try {
      slot.start();
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      if (this.#failedStarts !== undefined && !isShortage(error)) return this.#fail(error);
      // `connect` may not have returned the engine.
      queueMicrotask(() => {
        this.#starts.left(slot);
        if (slot.worker !== undefined || !this.#slots.has(slot)) return;
        const death = { cause: error, how: 'died', wasReady: false, running: undefined } as const;
        this.#onGone(slot, death);
      });
    }
  }

  /** A death is charged to the function that ran; only workers that cannot start fail the pool. */
  #onGone(slot: WorkerSlot, { cause, how, wasReady, running }: Death): void {
    // A cluster that has failed or was stopped runs nothing more: the worker is not replaced.
    const isOver = this.#isClosing || this.#failure !== undefined;
    if (isOver || this.#host.coordinator.shouldStop()) return;
    const isLeaving = this.#slots.isLeaving(slot);
    if (how === 'retired') {
      if (isLeaving) return this.#slots.remove(slot);
      this.#recycled += 1;
      return this.#starts.enter(slot);
    }
    const isCharged = how === 'killed' || running !== undefined;
    const deaths = slot.isReplaced(isCharged);
    log('%s, running %s', cause.message, running === undefined ? 'no function' : `'${running}'`);
    this.#host.tell('workerLost', slot.info, cause);
    if (isLeaving) return this.#slots.remove(slot);
    if (!wasReady) this.#slots.undo(cause);
    if (!this.#slots.has(slot)) return;
    if (!wasReady && !isCharged) {
      if (this.capacity === 0) this.#dispatcher.availability.startHasFailed(cause);
    }
    const error = this.#whyGivingUp(slot, cause, isCharged || wasReady);
    if (error !== undefined) return this.#fail(error);
    this.#starts.enterLater(slot, isCharged ? 0 : delayAfter(deaths));
  }

  /**
   * @param isOther - whether the worker has died of something else than its start
   * @returns why no worker is started any more, if no worker was ever ready
   */
  #whyGivingUp(slot: WorkerSlot, cause: Error, isOther: boolean): Error | undefined {
    if (this.#failedStarts === undefined) return undefined;
    const { onSetupFailed } = this.#settings;
    const isRetried = onSetupFailed !== undefined && slot.readiness.phase === 'setup-failed';
    if (!isOther && !isRetried && !isShortage(cause)) this.#failedStarts += 1;
    const slots = this.#slots.all;
    // What fails everywhere from the start will go on failing: the user wants to know.
    if (slots.every(({ hasFailedSetup }) => hasFailedSetup)) {
      if (onSetupFailed === undefined) return cause;
      onSetupFailed(cause);
    }
    if (this.#failedStarts <= MAX_STARTS * slots.length) return undefined;
    const text = `Giving up: workers died ${this.#failedStarts} times before they were ready. Last: ${cause.message}`;
    return new UnavailableError(text, { cause });
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#slots.end(error);
    this.#startNothing();
    this.#host.failed(error);
  }

  #startNothing(): void {
    this.#dispatcher.availability.close();
    this.#starts.close();
  }
}

const delayAfter = (deaths: number): number =>
  deaths < 2 ? 0 : Math.min(FIRST_RESTART_DELAY_MS * 2 ** (deaths - 2), LONGEST_RESTART_DELAY_MS);
