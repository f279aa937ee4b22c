/**
 * Decides whether a call settles, is queued again (`retries`, `retryOn`) or is cancelled: when its
 * attempt ends, its worker is lost, its caller gives it up, or the cluster ends.
 */

import { outOfRange } from '../../base/arguments.ts';
import { withCallersFrames } from '../../base/callers-frames.ts';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { beginCallEvents, CALL, type CallEvents } from '../../events/timeline.ts';
import type { Fate, Resource } from '../worker/messages.ts';
import type { VariableSource } from '../worker/variables.ts';
import { type Call, type CallOwner, lossesOf } from './call.ts';
import type { Placement } from './call-lines.ts';
import type { CallQueue, End, Outcome } from './call-queue.ts';
import { ChangeListeners } from './readiness.ts';
import type { ClusterHost, Engine, EngineEvent, QueuedWork, WorkerInfo } from './strategy.ts';
import { overdue } from './time-limits.ts';

type Given = 'queue' | 'coordinator' | 'cancelGraceMs' | 'retries' | 'variables';

/** A function is run again: its worker was lost, or `retryOn` says so. */
export type Retry = {
  /** The name of the function. */
  name: string;
  /** The number of the attempt that follows; at least 2. */
  attempt: number;
  /** Why the worker was lost, or the error of the function. */
  cause: unknown;
};

/** The pool, for its rules. */
export interface CallRulesListener {
  engine(): Engine;
  /** What each worker makes before it takes calls. */
  resources(): Iterable<Resource>;
  /** The workers have changed, or the queue is closed. */
  onChange(): void;
  /** `retry`: a call that was started is run again. */
  onEvent(...event: EngineEvent | [event: 'retry', retry: Retry]): void;
}

export class CallRules implements ClusterHost, CallOwner {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  readonly queue: CallQueue<Call>;
  /** Called when workers, the queue or the data sets have changed, or nothing is in flight. */
  readonly changes: ChangeListeners = new ChangeListeners();
  readonly events: CallEvents;
  readonly statistics: FunctionStatistics = new FunctionStatistics();
  readonly #listener: CallRulesListener;

  constructor(given: Pick<CallRules, Given>, listener: CallRulesListener) {
    this.queue = given.queue;
    this.coordinator = given.coordinator;
    this.cancelGraceMs = given.cancelGraceMs;
    this.retries = given.retries;
    this.variables = given.variables;
    this.events = beginCallEvents(attachmentOf(this.coordinator));
    this.#listener = listener;
  }

  get engine(): Engine {
    return this.#listener.engine();
  }

  /** Whether the cluster has failed, was closed or stopped: it runs nothing more. */
  get isOver(): boolean {
    return this.queue.isClosed || this.coordinator.shouldStop();
  }

  // ---------------------------------------------------------------- called by an engine

  get resources(): Iterable<Resource> {
    return this.#listener.resources();
  }

  ended(call: Call, outcome: Outcome, microseconds?: number): void {
    if (call.life.at !== 'in-flight') return; // `failed` has settled it
    const { state, value } = outcome;
    if (microseconds !== undefined) this.statistics.onRun(call, microseconds);
    if (call.decided !== undefined || state !== 'failed') this.#out(call, outcome);
    else if (this.#isEcho(value)) {
      this.#out(call, { state: 'cancelled', value: stopError(this.coordinator) });
    } else if (isAbort(value) && this.#whyOver(call) !== undefined) {
      this.#out(call, { state: 'cancelled', value }); // the function obeyed our cancellation
    } else if (microseconds === undefined) this.#fail(call, value);
    else this.#failed(call, value);
  }

  overdue(call: Call): void {
    const { life, decided, work, runTimeoutMs = 0 } = call;
    if (life.at !== 'in-flight' || decided !== undefined) return;
    this.decide(call, { state: 'failed', value: overdue(work.name, runTimeoutMs) });
  }

  returned(call: Call, fate: Fate, cause?: unknown): void {
    const { life, decided } = call;
    if (life.at !== 'in-flight') return; // `failed` has settled it
    if (decided !== undefined) {
      this.#out(call, decided);
      return;
    }
    const wasStarted = call.lost(fate);
    const why = call.whyNotAgain(cause);
    const error = this.nowhere(call.placement);
    const over = this.#whyOver(call);
    if (error !== undefined) this.#out(call, { state: 'failed', value: error });
    else if (why !== undefined) {
      this.#fail(call, withCallersFrames(new UnavailableError(why, { cause })));
    } else if (over !== undefined) this.#out(call, over);
    else {
      this.queue.putBack(call);
      // Of what ran beside it when it died first, nothing dies again.
      if (call.deaths > 1) this.statistics.of(call).noteFailure(lossesOf(call, cause));
      if (wasStarted) this.#again(call, cause);
      this.#afterFlight();
    }
  }

  reclaim(given: ReadonlyMap<Call, Fate>): Call[] {
    const back = this.queue.reclaim([...given.keys()]);
    for (const call of back) {
      if (call.found(given.get(call))) this.statistics.of(call).retried -= 1;
    }
    return back;
  }

  offered(call: Call, outcome: Outcome, microseconds: number): boolean {
    const { life, decided, group, retryRule } = call;
    const { state, value } = outcome;
    if ((life.at !== 'queued' && life.at !== 'in-flight') || decided !== undefined) return false;
    // Nor is an error after which the function may be run again: it is being run again.
    if (state === 'failed' && retryRule !== undefined) return false;
    // An obeyed cancellation is no result: the other attempt goes on.
    if (state === 'failed' && (isAbort(value) || this.#isEcho(value))) return false;
    this.statistics.onRun(call, microseconds);
    if (state === 'failed') this.statistics.of(call).noteFailure(value);
    const isQueued = life.at === 'queued';
    if (isQueued) this.queue.reclaim([call]); // on no worker: only what is in flight fails the group
    if (isQueued) this.queue.decide(call, outcome);
    else this.decide(call, outcome);
    if (state === 'failed') group?.failed(call, value);
    if (isQueued) this.#out(call, outcome);
    return true;
  }

  progressed(call: Call, values: readonly Uint8Array[]): void {
    call.progressed(values);
  }

  tell(...event: EngineEvent): void {
    if (event[0] !== 'workerLost' || !this.isOver) this.#listener.onEvent(...event);
  }

  work(): QueuedWork {
    const firsts = this.queue.line.firsts.toSorted((one, other) => one.madeAt - other.madeAt);
    const [oldest] = firsts;
    const { failures } = this.statistics;
    const work = { waiting: this.queue.queued, ...blockedOf(firsts, this.engine), failures };
    if (oldest === undefined) return work;
    const ms = performance.now() - oldest.madeAt;
    return { ...work, oldest: { name: oldest.work.name, ms } };
  }

  changed(): void {
    this.changes.notify();
    this.#listener.onChange();
  }

  failed(error: Error): void {
    const { message: why, cause = error } = error;
    const dropped: Outcome = { state: 'failed', value: error };
    // In a microtask, since `connect` may call this before it has returned the engine.
    queueMicrotask(() => {
      this.queue.close({ refusal: error, dropped, why: { why, cause, error } });
      for (const call of this.queue.some(isInFlight)) this.#out(call, dropped);
      this.changed();
    });
  }

  // ---------------------------------------------------------------- called by a call

  onSettled(call: Call, { state, isKept }: Outcome): void {
    if (isKept === true) return;
    const record = this.statistics.of(call);
    record.counts[state] += 1;
    const { waitedMs } = call;
    if (waitedMs !== undefined) record.wait.add(waitedMs * 1_000);
  }

  // ---------------------------------------------------------------- called by ClusterCoordinator

  /**
   * Settles a call, wherever it is, with `outcome`, by its caller's deadline, signal or `cancel`:
   * that is a failure of nobody else's. Cancels its attempt if it is in flight.
   */
  decide(call: Call, outcome: Outcome): void {
    if (call.life.at !== 'in-flight') {
      this.queue.out(call, outcome);
      return;
    }
    if (call.decided !== undefined) return;
    this.queue.decide(call, outcome);
    // Ready while in flight: another worker had it, too, and was first.
    const reason =
      outcome.state === 'ready' ? new CancelledError('Another worker was first') : outcome.value;
    this.engine.cancel(call, { reason, replace: true });
  }

  /**
   * The workers have become fewer: fails each call for which there will never be a worker.
   *
   * @param waiting - those that were not put in the queue yet
   */
  failUnplaceable(waiting: readonly Call[] = []): void {
    const isQueued = ({ life }: Call): boolean => life.at !== 'in-flight';
    for (const call of [...this.queue.some(isQueued), ...waiting]) {
      const error = this.nowhere(call.placement);
      if (error !== undefined) this.decide(call, { state: 'failed', value: error });
    }
  }

  /**
   * Ends the cluster: drops what has not begun, and cancels what is in flight with `reason`; workers
   * that do not obey are replaced.
   */
  end(end: End, reason: unknown): void {
    this.queue.close(end);
    for (const call of this.queue.some(isInFlight))
      this.engine.cancel(call, { reason, replace: true });
    this.changed();
  }

  /** @returns the error of a call with this placement, if there will never be a worker for it */
  nowhere(placement: Placement | undefined): RangeError | undefined {
    const why = placement && this.engine.whyNowhere(placement);
    if (placement === undefined || why === undefined) return undefined;
    const { worker, resources } = placement;
    return worker === undefined
      ? outOfRange('options.resources', `what a worker can have: ${why}`, resources)
      : outOfRange('options.worker', `that of a worker that can be: ${why}`, worker);
  }

  /** How a call settles that cannot be run again, because of the others or the end. */
  #whyOver(call: Call): Outcome | undefined {
    return this.queue.end?.dropped ?? call.group?.whyNot(call);
  }

  /** The function has thrown an error of its own: it is run again if its call says so. */
  #failed(call: Call, error: unknown): void {
    let delayMs: number | undefined;
    let failure = error;
    try {
      delayMs = call.failed(error);
    } catch (wrong) {
      failure = wrong;
    }
    const { decided } = call;
    const over = this.#whyOver(call);
    if (decided !== undefined)
      this.#out(call, decided); // `retryOn` has cancelled it
    else if (delayMs === undefined) this.#fail(call, failure);
    else if (over !== undefined) this.#out(call, over);
    else if (this.nowhere(call.placement) !== undefined) this.#fail(call, failure);
    else {
      const again = (): void => void this.queue.release(call);
      this.statistics.of(call).noteFailure(error);
      this.queue.delay(call, delayMs === 0 ? undefined : new Timer(delayMs, again));
      this.#again(call, error);
      if (delayMs === 0) again();
      this.#afterFlight();
    }
  }

  #again(call: Call, cause: unknown): void {
    const { name } = call.work;
    this.statistics.of(call).retried += 1;
    this.#listener.onEvent('retry', { name, attempt: call.attempts + 1, cause });
    call.note(CALL.runAgain);
  }

  /** The call fails, and may fail its group: it settles before the group hears of it. */
  #fail(call: Call, value: unknown): void {
    const outcome: Outcome = { state: 'failed', value };
    this.statistics.of(call).noteFailure(value);
    this.queue.decide(call, outcome);
    call.group?.failed(call, value);
    this.#out(call, outcome);
  }

  #out(call: Call, outcome: Outcome): void {
    this.queue.out(call, outcome);
    this.#afterFlight();
  }

  #afterFlight(): void {
    if (this.queue.count('in-flight') === 0) this.changes.notify();
  }

  /** Whether a function threw `error` because the cluster was stopped: no failure of its own. */
  #isEcho(error: unknown): boolean {
    const record = attachmentOf(this.coordinator).errors.record(false);
    if (record === undefined) return false;
    const isIt = (reported: unknown): boolean => Object.is(error, reported);
    return (
      isAbort(error) || isIt(record.error) || record.suppressed.some((each) => isIt(each.error))
    );
  }
}

/**
 * Marks the error of a call that the stop has ended as an echo of the stop, as the error of a
 * queue's wait is: a body of `Coordinator.run` that rejects with it at Ctrl-C has just ended. Its
 * `cause` becomes the error of the stop, else an AbortError.
 */
export const stopError = (coordinator: Coordinator): Error =>
  attachmentOf(coordinator).signal.interrupted(
    new CancelledError(`The ${coordinator.name} was stopped`),
  );

/** @param oldest - calls that wait, the oldest first */
function blockedOf(oldest: readonly Call[], engine: Engine): Pick<QueuedWork, 'blocked'> {
  for (const [index, { work, placement }] of oldest.entries()) {
    const why = engine.whyBlocked(placement);
    if (why !== undefined) return { blocked: index === 0 ? why : `'${work.name}' waits: ${why}` };
  }
  return {};
}

const isInFlight = ({ life }: Call): boolean => life.at === 'in-flight';

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);

// What has become of the calls, by function. Durations are counted in buckets that are 1/16 wide: as exact as a dashboard needs, with the same
// small memory however many there are. (Node's own `createHistogram` is not in every runtime.)

/** How durations are spread, in milliseconds. */
export type Percentiles = {
  /** The median: half of the durations are not longer. */
  p50: number;
  /** 90 % of the durations are not longer. */
  p90: number;
  /** 99 % of the durations are not longer. */
  p99: number;
  /** The longest duration. */
  max: number;
};

const STEPS = 16;
/** From 1 µs to 2^48 µs, nine years. */
const BUCKETS: number = 48 * STEPS;

class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;
  #maxUs = 0;

  add(microseconds: number): void {
    const bucket = Math.floor(Math.log2(Math.max(1, microseconds)) * STEPS);
    const at = Math.min(bucket, BUCKETS - 1);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
    if (microseconds > this.#maxUs) this.#maxUs = microseconds;
  }

  /** The maximum is exact; a percentile is at most 5 % too high. All are 0 if nothing was added. */
  percentiles(): Percentiles {
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => this.#percentile(share));
    return { p50, p90, p99, max: this.#maxUs / 1_000 } as Percentiles;
  }

  #percentile(share: number): number {
    const wanted = Math.ceil(this.#total * share);
    let seen = 0;
    if (wanted === 0) return 0;
    for (let at = 0; at < BUCKETS; at += 1) {
      seen += this.#counts[at] ?? 0;
      if (seen >= wanted) return Math.min(2 ** ((at + 1) / STEPS), this.#maxUs) / 1_000;
    }
    return this.#maxUs / 1_000;
  }
}

/** Counts since the cluster was made. */
export type FunctionStats = {
  /** Ended with a result. */
  completed: number;
  /** Ended with an error. */
  failed: number;
  /** Cancelled before their end. */
  cancelled: number;
  /** How often it was run again: its worker was lost, or `retryOn` said so. */
  retried: number;
  /** Milliseconds from the call until a worker took it. */
  waitMs: Percentiles;
  /** Milliseconds that it ran, of all that ended with a result or an error. */
  runMs: Percentiles;
};

/** A function that has failed in the last minutes, for an operator. */
type Failures = { since: number; at: number; count: number; last: string };

const LASTS_MS = 5 * 60_000;
const MOST_NAMES = 100;
const LONGEST_TEXT = 200;

class FunctionRecord {
  readonly counts: Record<Outcome['state'], number> = { ready: 0, failed: 0, cancelled: 0 };
  readonly wait: Histogram = new Histogram();
  readonly run: Histogram = new Histogram();
  retried = 0;
  failures: Failures | undefined;

  get stats(): FunctionStats {
    const { ready: completed, failed, cancelled } = this.counts;
    const waitMs = this.wait.percentiles();
    const runMs = this.run.percentiles();
    return { completed, failed, cancelled, retried: this.retried, waitMs, runMs };
  }

  noteFailure(error: unknown): void {
    const now = performance.now();
    const last = messageOf(error).slice(0, LONGEST_TEXT);
    const { since, count } = this.failures ?? { since: Number.NEGATIVE_INFINITY, count: 0 };
    const isOld = now - since > LASTS_MS;
    this.failures = { since: isOld ? now : since, at: now, count: isOld ? 1 : count + 1, last };
  }
}

export class FunctionStatistics {
  readonly #records = new Map<string, FunctionRecord>();
  /** How long functions have run, together, and how long workers were there for them. */
  #runMs = 0;
  #capacityMs = 0;
  #capacity = 0;
  #countedAt: number = performance.now();

  onRun(call: Call, microseconds: number): void {
    this.of(call).run.add(microseconds);
    this.#runMs += microseconds / 1_000;
  }

  /** The number of functions that can run at once has changed, or may have. */
  setCapacity(capacity: number): void {
    const now = performance.now();
    this.#capacityMs += this.#capacity * (now - this.#countedAt);
    this.#capacity = capacity;
    this.#countedAt = now;
  }

  /** By the name of the function. */
  get functions(): Record<string, FunctionStats> {
    return Object.fromEntries([...this.#records].map(([name, { stats }]) => [name, stats]));
  }

  /** Of all functions together. */
  get totals(): Pick<FunctionStats, 'completed' | 'failed' | 'cancelled' | 'retried'> {
    const totals = { completed: 0, failed: 0, cancelled: 0, retried: 0 };
    for (const { counts, retried } of this.#records.values()) {
      totals.completed += counts.ready;
      totals.failed += counts.failed;
      totals.cancelled += counts.cancelled;
      totals.retried += retried;
    }
    return totals;
  }

  get failures(): QueuedWork['failures'] {
    const now = performance.now();
    const recent = [...this.#records].flatMap(([name, { failures }]) =>
      failures === undefined || now - failures.at > LASTS_MS
        ? []
        : [{ name, count: failures.count, last: failures.last }],
    );
    return recent.slice(0, MOST_NAMES);
  }

  /** The share of the workers' time that functions have run, or run now. */
  utilization(workers: readonly WorkerInfo[]): number {
    this.setCapacity(this.#capacity);
    if (this.#capacityMs === 0) return 0;
    const now = Date.now();
    const running = workers.flatMap(({ calls }) => calls);
    const runningMs = running.reduce((sum, { startedAt }) => sum + now - startedAt.getTime(), 0);
    return Math.max(0, Math.min(1, (this.#runMs + runningMs) / this.#capacityMs));
  }

  of({ work }: Call): FunctionRecord {
    const { name } = work;
    let record = this.#records.get(name);
    if (record === undefined) this.#records.set(name, (record = new FunctionRecord()));
    return record;
  }
}
