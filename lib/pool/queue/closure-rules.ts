/**
 * Decides whether a closure settles, is queued again or is cancelled: when its attempt ends, its
 * worker is lost, a function fails, or the cluster stops.
 */

import { withCallersFrames } from '../../base/callers-frames.ts';
import { describe, messageOf } from '../../base/thrown-value.ts';
import type { VariableSource } from '../../cluster/variables/variable-store.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { clusterClosed } from '../../errors/cluster-closed.ts';
import {
  CancelledError,
  ClosureInputError,
  FailedPreconditionError,
  UnavailableError,
} from '../../errors/errors.ts';
import { CLOSURE } from '../../events/timeline/closure-events.ts';
import type { Fate } from '../worker/protocol.ts';
import type { Call, Closure, ClosureOutcome } from './closure.ts';
import type { ClosureQueue } from './closure-queue.ts';
import type { Runner } from './lines/closure-lines.ts';
import { nowhere, type Placement } from './lines/placement.ts';
import type { NeverReady } from './readiness.ts';
import { RecentFailures } from './recent-failures.ts';
import type { Cancellation, ClusterHost, QueuedWork, WorkerInfo } from './strategy.ts';
import { overdue } from './time-limits.ts';

export type ClosureRulesOptions = {
  queue: ClosureQueue<Closure>;
  coordinator: Coordinator;
  cancelGraceMs: number;
  retries: number;
  variables: VariableSource;
};

export interface ClosureRulesListener {
  /** Asks the attempt of a closure in flight to end (`Engine.cancel`). */
  cancel(closure: Closure, cancellation: Cancellation): void;
  /** Tags all resources for a new worker. Those for its predecessor were removed before. */
  prepare(worker: number): void;
  /** A closure has left the queue, or has ended. */
  onLeft(): void;
  /** The workers have changed, nothing is in flight any more, or the queue is closed. */
  onChange(): void;
  /** The function of a closure has run for so long, with a result or an error. */
  onRun(closure: Closure, microseconds: number): void;
  /** A closure that was started is run again; `attempt` is the number of its next attempt. */
  onRetry(closure: Closure, attempt: number, cause: unknown): void;
  /** `Engine.whyNowhere` */
  whyNowhere(placement: Placement): string | undefined;
  onWorkerStarted(worker: WorkerInfo): void;
  onWorkerLost(worker: WorkerInfo, error: Error): void;
  onWorkerStuck(worker: WorkerInfo): void;
  onDisconnected(error: Error): void;
  onReconnected(): void;
}

export class ClosureRules implements ClusterHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  readonly #queue: ClosureQueue<Closure>;
  readonly #listener: ClosureRulesListener;
  /** Why no worker will ever start any more; undefined while one may. */
  #failure: Error | undefined;
  #retried = 0;
  readonly #failures = new RecentFailures();
  #isClosed = false;
  #refusal: { value: unknown } | undefined;
  #dropped: { value: unknown } | undefined;

  constructor(
    { queue, coordinator, cancelGraceMs, retries, variables }: ClosureRulesOptions,
    listener: ClosureRulesListener,
  ) {
    this.#queue = queue;
    this.coordinator = coordinator;
    this.cancelGraceMs = cancelGraceMs;
    this.retries = retries;
    this.variables = variables;
    this.#listener = listener;
  }

  /** How often a function was run again because its worker was lost, or after its error. */
  get retried(): number {
    return this.#retried;
  }

  get isIdle(): boolean {
    return this.#queue.inFlight.size === 0;
  }

  /** Whether nothing waits for room, is queued or in flight. */
  get isEmpty(): boolean {
    return this.#queue.isEmpty;
  }

  /** Whether the cluster has failed, was closed or stopped: it runs nothing more. */
  get isOver(): boolean {
    return this.#failure !== undefined || this.#isClosed || this.coordinator.shouldStop();
  }

  /** The error with which calls are refused; undefined while they are taken. */
  get refusal(): { value: unknown } | undefined {
    return this.#refusal;
  }

  /** Why what was called before the cluster was over ends without having run. */
  get dropped(): { value: unknown } | undefined {
    return this.#dropped;
  }

  /** The state of the cluster in a few words, for util.inspect. */
  get shown(): string[] {
    const { queued, inFlight } = this.#queue;
    return [this.isOver ? 'ended' : 'running', `${queued} queued`, `${inFlight.size} in flight`];
  }

  /** @returns undefined as long as workers can still become ready */
  whyNeverReady(): NeverReady | undefined {
    if (this.#failure !== undefined) {
      const { message: why, cause = this.#failure } = this.#failure;
      return { why, cause, error: this.#failure };
    }
    if (this.#isClosed) return { why: 'the cluster is closed', cause: undefined };
    if (!this.coordinator.shouldStop()) return undefined;
    const why = 'the cluster was stopped';
    return { why, cause: this.coordinator.stopRecord?.error, isStop: true };
  }

  /**
   * Marks the error of a call that the stop has ended as an echo of the stop, as the error of a
   * queue's wait is: a body of `Coordinator.run` that rejects with it at Ctrl-C has just ended. Its
   * `cause` becomes the error of the stop, else an AbortError.
   */
  interrupted(error: Error): Error {
    return attachmentOf(this.coordinator).interrupted(error);
  }

  // ---------------------------------------------------------------- called by an engine

  get hasPlaced(): boolean {
    return this.#queue.hasPlaced;
  }

  get placedOn(): readonly number[] {
    return this.#queue.placedOn;
  }

  get waiting(): number {
    return this.#queue.queued;
  }

  isSuspectNext(runner: Runner): boolean {
    return this.#queue.isSuspectNext(runner);
  }

  take(runner: Runner): Closure | undefined {
    const closure = this.#queue.take(runner);
    if (closure === undefined) return undefined;
    closure.taken();
    return closure;
  }

  takeTagged(worker: number): Closure | undefined {
    return this.#queue.takeTagged(worker);
  }

  hasTagged(): boolean {
    return this.#queue.hasTagged;
  }

  prepare(worker: number): void {
    while (this.#queue.takeTagged(worker) !== undefined);
    this.#listener.prepare(worker);
  }

  ended(closure: Closure, { state, value }: ClosureOutcome, microseconds?: number): void {
    if (closure.place !== 'in-flight') return; // `failed` has settled it
    if (microseconds !== undefined) this.#listener.onRun(closure, microseconds);
    if (closure.decided !== undefined || state !== 'failed') {
      closure.settle(state, value);
      this.#queue.end(closure);
    } else if (this.#isEcho(value)) {
      closure.settle('cancelled', this.#stopError());
      this.#queue.end(closure);
    } else if (isAbort(value) && this.#wasCancelled(closure)) {
      closure.settle('cancelled', value); // the function obeyed our cancellation
      this.#queue.end(closure);
    } else if (microseconds === undefined) this.#fail(closure, value);
    else this.#failed(closure, value);
    this.#afterFlight(closure);
  }

  overdue(closure: Closure): void {
    const { place, decided, work, runTimeoutMs = 0 } = closure;
    if (place !== 'in-flight' || decided !== undefined) return;
    this.decide(closure, { state: 'failed', value: overdue((work as Call).name, runTimeoutMs) });
  }

  returned(closure: Closure, fate: Fate, cause?: unknown): void {
    if (closure.place !== 'in-flight') return; // `failed` has settled it
    if (closure.decided !== undefined) {
      this.#queue.end(closure);
      this.#afterFlight(closure);
      return;
    }
    const wasStarted = closure.lost(fate);
    const why = this.#whyNotAgain(closure, cause);
    const error = this.#nowhere(closure);
    if (error !== undefined) {
      closure.settle('failed', error);
      this.#queue.end(closure);
    } else if (why === undefined) {
      const isQueued = this.#queue.putBack(closure);
      if (wasStarted && isQueued) this.#again(closure, cause);
    } else this.#fail(closure, withCallersFrames(new UnavailableError(why, { cause })));
    this.#afterFlight(closure);
  }

  reclaim(given: ReadonlyMap<Closure, Fate>): Closure[] {
    const back = this.#queue.reclaim([...given.keys()]);
    for (const closure of back) {
      if (closure.found(given.get(closure))) this.#retried -= 1;
    }
    return back;
  }

  offered(closure: Closure, outcome: ClosureOutcome, microseconds: number): boolean {
    const { place, decided } = closure;
    if ((place !== 'queued' && place !== 'in-flight') || decided !== undefined) return false;
    // Nor is an error after which the function may be run again: it is being run again.
    if (outcome.state === 'failed' && closure.retryRule !== undefined) return false;
    // An obeyed cancellation is no result: the other attempt goes on.
    if (outcome.state === 'failed' && (isAbort(outcome.value) || this.#isEcho(outcome.value))) {
      return false;
    }
    this.#listener.onRun(closure, microseconds);
    if (outcome.state !== 'failed' || closure.isOwn) {
      this.decide(closure, outcome);
      return true;
    }
    // A failure that fails the others has to come out of flight: the queue knows no other.
    if (place === 'queued') this.#queue.reclaim([closure]);
    else this.#listener.cancel(closure, { reason: anotherWasFirst(), replace: true });
    this.#fail(closure, outcome.value);
    this.#afterFlight(closure);
    return true;
  }

  progressed(closure: Closure, values: readonly Uint8Array[]): void {
    if (closure.place === 'in-flight' && closure.decided === undefined) closure.progressed(values);
  }

  workerStarted(worker: WorkerInfo): void {
    this.#listener.onWorkerStarted(worker);
  }

  workerLost(worker: WorkerInfo, error: Error): void {
    const isEnding = this.#isClosed || this.coordinator.shouldStop();
    if (!isEnding) this.#listener.onWorkerLost(worker, error);
  }

  workerStuck(worker: WorkerInfo): void {
    this.#listener.onWorkerStuck(worker);
  }

  work(): QueuedWork {
    const firsts = this.#queue.firsts.toSorted((one, other) => one.madeAt - other.madeAt);
    const [first] = firsts;
    const failures = this.#failures.recent;
    const waiting = this.#queue.queued;
    if (first === undefined) return { waiting, failures };
    const { placement, madeAt } = first;
    const ms = performance.now() - madeAt;
    const oldest = { name: nameOf(first), ms, ...(placement !== undefined && { placement }) };
    return { waiting, oldest, failures };
  }

  disconnected(error: Error): void {
    this.#listener.onDisconnected(error);
  }

  reconnected(): void {
    this.#listener.onReconnected();
  }

  changed(): void {
    this.#listener.onChange();
  }

  failed(error: Error): void {
    this.#failure = error;
    this.#refusal = { value: error };
    this.#dropped ??= { value: error };
    // In a microtask, since `connect` may call this before it has returned the engine.
    queueMicrotask(() => {
      this.#queue.close(error, { state: 'failed', value: error });
      for (const closure of this.#queue.inFlight) {
        closure.settle('failed', error);
        this.#queue.end(closure);
      }
      this.#listener.onLeft();
      this.#listener.onChange();
    });
  }

  // ---------------------------------------------------------------- called by ClusterCoordinator

  /**
   * Settles a closure, wherever it is, with `outcome`, by its caller's deadline, signal or `cancel`:
   * that is a failure of nobody else's. Cancels its attempt if it is in flight.
   */
  decide(closure: Closure, outcome: ClosureOutcome): void {
    const { state, value } = outcome;
    if (closure.place === 'in-flight') {
      closure.decide(outcome);
      // Ready while in flight: another worker had it, too, and was first.
      const reason = state === 'ready' ? anotherWasFirst() : value;
      this.#listener.cancel(closure, { reason, replace: true });
    } else if (['queued', 'held', 'delayed'].includes(closure.place)) {
      closure.settle(state, value);
      this.#queue.remove(closure);
    } else this.#queue.remove(closure, value); // it waits for room: `schedule` rejects
    this.#listener.onLeft();
  }

  /** The workers have become fewer: fails each closure for which there will never be a worker. */
  failUnplaceable(): void {
    for (const closure of this.#queue.placed) {
      const error = this.#nowhere(closure);
      if (error !== undefined) this.decide(closure, { state: 'failed', value: error });
    }
  }

  #nowhere({ placement }: Closure): RangeError | undefined {
    if (placement === undefined) return undefined;
    const why = this.#listener.whyNowhere(placement);
    return why === undefined ? undefined : nowhere(placement, why);
  }

  /** Lets what was called end; refuses later calls. */
  drain(): void {
    const error = new FailedPreconditionError('The cluster is closing');
    this.#refusal ??= { value: error };
    this.#queue.refuse(error);
    this.#listener.onChange();
  }

  /** Drops the queued closures and cancels those in flight. */
  close(): void {
    this.#isClosed = true;
    const dropped = new CancelledError('The cluster was closed');
    this.#stopAll(clusterClosed(), dropped, dropped);
  }

  /** Called after a stop: drops the queued closures and cancels those in flight. */
  stop(): void {
    const error = this.#stopError();
    this.#stopAll(error, error, this.coordinator.signal.reason);
  }

  /** @returns undefined if the closure can be queued again */
  #whyNotAgain(closure: Closure, cause: unknown): string | undefined {
    const name = nameOf(closure);
    // A moved closure that comes back without a cause was recalled after a failure, or a stop:
    // `putBack` drops it.
    if (closure.isMoved && cause !== undefined) {
      return `The arguments of '${name}' were moved to a worker that is lost`;
    }
    const { attempts, deaths, retries } = closure;
    if (!closure.isSpent) return undefined;
    const times = deaths === 1 ? 'once' : `${deaths} times`;
    const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
    const last = cause === undefined ? '' : `. Last: ${messageOf(cause)}`;
    return `'${name}' lost its worker ${times} in ${tries} (retries: ${retries})${last}`;
  }

  /** The function has thrown an error of its own: it is run again if its call says so. */
  #failed(closure: Closure, error: unknown): void {
    let delayMs: number | undefined;
    try {
      delayMs = this.#delayBefore(closure, error);
    } catch (wrong) {
      this.#fail(closure, wrong);
      return;
    }
    if (delayMs === undefined) {
      this.#fail(closure, error);
      return;
    }
    closure.failed();
    if (!this.#queue.delay(closure)) return;
    this.#again(closure, error);
    const again = (): void => void this.#queue.release(closure);
    if (delayMs === 0) again();
    else closure.delay(delayMs, again);
  }

  /**
   * Milliseconds until the function is run again after its error; undefined: it is not.
   *
   * @throws what `retryOn` or `retryDelayMs` throws; TypeError, RangeError: what they return
   */
  #delayBefore(closure: Closure, error: unknown): number | undefined {
    const { retryRule, deaths, failures, retries, isMoved } = closure;
    if (retryRule === undefined || isMoved || deaths + failures >= retries) return undefined;
    if (error instanceof ClosureInputError) return undefined; // the function was not started
    return retryRule(error, closure.attempts + 1);
  }

  #again(closure: Closure, cause: unknown): void {
    this.#retried += 1;
    this.#listener.onRetry(closure, closure.attempts + 1, cause);
    closure.note(CLOSURE.runAgain);
  }

  #fail(closure: Closure, error: unknown): void {
    this.#failures.note(nameOf(closure), error);
    closure.settle('failed', error);
    if (closure.isOwn) this.#queue.end(closure);
    else if (this.#queue.fail(closure, error)) this.#cancelOthers(closure, error);
  }

  /** Whether the cluster has asked the closure's attempt to end. */
  #wasCancelled({ isOwn }: Closure): boolean {
    return this.#isClosed || (!isOwn && this.#queue.hasFailed);
  }

  #afterFlight(closure: Closure): void {
    if (closure.place === 'out') closure.leave();
    this.#listener.onLeft();
    if (this.isIdle) this.#listener.onChange();
  }

  /**
   * Aborts the signals of the scheduled functions that run, which may go on; recalls the scheduled
   * ones that do not.
   */
  #cancelOthers(failed: Closure, error: unknown): void {
    const text = `Cancelled because ${failureOf(failed, error)}`;
    const reason = new CancelledError(text, { cause: error });
    for (const closure of this.#queue.inFlight) {
      if (closure.isOwn) continue;
      if (closure.decided === undefined) this.#listener.cancel(closure, { reason, replace: false });
    }
  }

  /** Closes the queue, cancels the closures in flight, and replaces workers that do not obey. */
  #stopAll(error: unknown, dropped: Error, reason: unknown): void {
    if (!this.#queue.isClosed) this.#refusal = { value: error };
    this.#dropped ??= { value: dropped };
    this.#queue.close(error, { state: 'cancelled', value: dropped });
    for (const closure of this.#queue.inFlight) {
      this.#listener.cancel(closure, { reason, replace: true });
    }
    this.#listener.onLeft();
    this.#listener.onChange();
  }

  #stopError(): Error {
    return this.interrupted(new CancelledError('The cluster was stopped'));
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

const anotherWasFirst = (): CancelledError => new CancelledError('Another worker was first');

/** The `onFailure` of the cluster's queue. Closures of the same name share one error. */
export function cancelledBy(failed: Closure, error: unknown): (dropped: Closure) => unknown {
  if (error instanceof CancelledError) return () => error;
  const errors = new Map<string, CancelledError>();
  return (dropped) => {
    const name = nameOf(dropped);
    let shared = errors.get(name);
    if (shared === undefined) {
      const text = `'${name}' was cancelled because ${failureOf(failed, error)}. Please reschedule it`;
      shared = new CancelledError(text, { cause: error });
      errors.set(name, shared);
    }
    return shared;
  };
}

const nameOf = ({ work }: Closure): string => (work as Call).name;

const failureOf = (failed: Closure, error: unknown): string =>
  `'${nameOf(failed)}' failed: ${describe(error)}`;

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);
