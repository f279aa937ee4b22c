/**
 * Decides whether a closure settles, is queued again or is cancelled: when its attempt ends, its
 * worker is lost, its caller gives it up, or the cluster ends.
 */

import { withCallersFrames } from '../../base/callers-frames.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { CLOSURE } from '../../events/timeline/closure-events.ts';
import type { Fate, Resource } from '../worker/protocol.ts';
import type { VariableSource } from '../worker/variables.ts';
import type { Closure } from './closure.ts';
import type { ClosureQueue, End } from './closure-queue.ts';
import type { Outcome } from './life.ts';
import { nowhere, type Placement } from './lines/placement.ts';
import { RecentFailures } from './recent-failures.ts';
import type { Cancellation, ClusterHost, EngineEvent, QueuedWork } from './strategy.ts';
import { overdue } from './time-limits.ts';

export type ClosureRulesOptions = {
  queue: ClosureQueue<Closure>;
  coordinator: Coordinator;
  cancelGraceMs: number;
  retries: number;
  variables: VariableSource;
};

export interface ClosureRulesListener {
  /** What each worker makes before it takes calls. */
  resources(): Iterable<Resource>;
  /** Asks the attempt of a closure in flight to end (`Engine.cancel`). */
  cancel(closure: Closure, cancellation: Cancellation): void;
  /** The workers have changed, nothing is in flight any more, or the queue is closed. */
  onChange(): void;
  /** The function of a closure has run for so long, with a result or an error. */
  onRun(closure: Closure, microseconds: number): void;
  /** A closure that was started is run again; `attempt` is the number of its next attempt. */
  onRetry(closure: Closure, attempt: number, cause: unknown): void;
  /** `Engine.whyNowhere` */
  whyNowhere(placement: Placement): string | undefined;
  onEvent(...event: EngineEvent): void;
}

export class ClosureRules implements ClusterHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  readonly queue: ClosureQueue<Closure>;
  readonly #listener: ClosureRulesListener;
  #retried = 0;
  readonly #failures = new RecentFailures();

  constructor(
    { queue, coordinator, cancelGraceMs, retries, variables }: ClosureRulesOptions,
    listener: ClosureRulesListener,
  ) {
    this.queue = queue;
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

  /** Whether the cluster has failed, was closed or stopped: it runs nothing more. */
  get isOver(): boolean {
    return this.queue.isClosed || this.coordinator.shouldStop();
  }

  // ---------------------------------------------------------------- called by an engine

  get resources(): Iterable<Resource> {
    return this.#listener.resources();
  }

  ended(closure: Closure, outcome: Outcome, microseconds?: number): void {
    if (closure.life.at !== 'in-flight') return; // `failed` has settled it
    const { state, value } = outcome;
    if (microseconds !== undefined) this.#listener.onRun(closure, microseconds);
    if (closure.decided !== undefined || state !== 'failed') this.#out(closure, outcome);
    else if (this.#isEcho(value)) {
      this.#out(closure, { state: 'cancelled', value: stopError(this.coordinator) });
    } else if (isAbort(value) && this.#whyOver(closure) !== undefined) {
      this.#out(closure, { state: 'cancelled', value }); // the function obeyed our cancellation
    } else if (microseconds === undefined) this.#fail(closure, value);
    else this.#failed(closure, value);
  }

  overdue(closure: Closure): void {
    const { life, decided, work, runTimeoutMs = 0 } = closure;
    if (life.at !== 'in-flight' || decided !== undefined) return;
    this.decide(closure, { state: 'failed', value: overdue(work.name, runTimeoutMs) });
  }

  returned(closure: Closure, fate: Fate, cause?: unknown): void {
    const { life, decided } = closure;
    if (life.at !== 'in-flight') return; // `failed` has settled it
    if (decided !== undefined) {
      this.#out(closure, decided);
      return;
    }
    const wasStarted = closure.lost(fate);
    const why = closure.whyNotAgain(cause);
    const error = this.#nowhere(closure);
    const over = this.#whyOver(closure);
    if (error !== undefined) this.#out(closure, { state: 'failed', value: error });
    else if (why !== undefined) {
      this.#fail(closure, withCallersFrames(new UnavailableError(why, { cause })));
    } else if (over !== undefined) this.#out(closure, over);
    else {
      this.queue.putBack(closure);
      if (wasStarted) this.#again(closure, cause);
      this.#afterFlight();
    }
  }

  reclaim(given: ReadonlyMap<Closure, Fate>): Closure[] {
    const back = this.queue.reclaim([...given.keys()]);
    for (const closure of back) {
      if (closure.found(given.get(closure))) this.#retried -= 1;
    }
    return back;
  }

  offered(closure: Closure, outcome: Outcome, microseconds: number): boolean {
    const { life, decided, group, retryRule } = closure;
    const { state, value } = outcome;
    if ((life.at !== 'queued' && life.at !== 'in-flight') || decided !== undefined) return false;
    // Nor is an error after which the function may be run again: it is being run again.
    if (state === 'failed' && retryRule !== undefined) return false;
    // An obeyed cancellation is no result: the other attempt goes on.
    if (state === 'failed' && (isAbort(value) || this.#isEcho(value))) return false;
    this.#listener.onRun(closure, microseconds);
    if (state === 'failed') this.#failures.note(closure.work.name, value);
    const isQueued = life.at === 'queued';
    if (isQueued) this.queue.reclaim([closure]); // on no worker: only what is in flight fails the group
    if (isQueued) this.queue.decide(closure, outcome);
    else this.decide(closure, outcome);
    if (state === 'failed') group?.failed(closure, value);
    if (isQueued) this.#out(closure, outcome);
    return true;
  }

  progressed(closure: Closure, values: readonly Uint8Array[]): void {
    closure.progressed(values);
  }

  tell(...event: EngineEvent): void {
    if (event[0] !== 'workerLost' || !this.isOver) this.#listener.onEvent(...event);
  }

  work(): QueuedWork {
    const firsts = this.queue.firsts.toSorted((one, other) => one.madeAt - other.madeAt);
    const [first] = firsts;
    const failures = this.#failures.recent;
    const waiting = this.queue.queued;
    if (first === undefined) return { waiting, failures };
    const { placement, madeAt, work } = first;
    const ms = performance.now() - madeAt;
    const oldest = { name: work.name, ms, ...(placement !== undefined && { placement }) };
    return { waiting, oldest, failures };
  }

  changed(): void {
    this.#listener.onChange();
  }

  failed(error: Error): void {
    const { message: why, cause = error } = error;
    const dropped: Outcome = { state: 'failed', value: error };
    // In a microtask, since `connect` may call this before it has returned the engine.
    queueMicrotask(() => {
      this.queue.close({ refusal: error, dropped, why: { why, cause, error } });
      for (const closure of this.#inFlight()) this.#out(closure, dropped);
      this.changed();
    });
  }

  // ---------------------------------------------------------------- called by ClusterCoordinator

  /**
   * Settles a closure, wherever it is, with `outcome`, by its caller's deadline, signal or `cancel`:
   * that is a failure of nobody else's. Cancels its attempt if it is in flight.
   */
  decide(closure: Closure, outcome: Outcome): void {
    if (closure.life.at !== 'in-flight') {
      this.queue.out(closure, outcome);
      return;
    }
    if (closure.decided !== undefined) return;
    this.queue.decide(closure, outcome);
    // Ready while in flight: another worker had it, too, and was first.
    const reason =
      outcome.state === 'ready' ? new CancelledError('Another worker was first') : outcome.value;
    this.#listener.cancel(closure, { reason, replace: true });
  }

  /**
   * The workers have become fewer: fails each closure for which there will never be a worker.
   *
   * @param waiting - those that were not put in the queue yet
   */
  failUnplaceable(waiting: readonly Closure[]): void {
    for (const closure of [...this.queue.placed, ...waiting]) {
      const error = this.#nowhere(closure);
      if (error !== undefined) this.decide(closure, { state: 'failed', value: error });
    }
  }

  /**
   * Ends the cluster: drops what has not begun, and cancels what is in flight with `reason`; workers
   * that do not obey are replaced.
   */
  end(end: End, reason: unknown): void {
    this.queue.close(end);
    for (const closure of this.#inFlight()) {
      this.#listener.cancel(closure, { reason, replace: true });
    }
    this.changed();
  }

  #inFlight(): Closure[] {
    return this.queue.some(({ life }) => life.at === 'in-flight');
  }

  #nowhere({ placement }: Closure): RangeError | undefined {
    if (placement === undefined) return undefined;
    const why = this.#listener.whyNowhere(placement);
    return why === undefined ? undefined : nowhere(placement, why);
  }

  /** How a closure settles that cannot be run again, because of the others or the end. */
  #whyOver(closure: Closure): Outcome | undefined {
    return this.queue.end?.dropped ?? closure.group?.whyNot(closure);
  }

  /** The function has thrown an error of its own: it is run again if its call says so. */
  #failed(closure: Closure, error: unknown): void {
    let delayMs: number | undefined;
    try {
      delayMs = closure.failed(error);
    } catch (wrong) {
      this.#fail(closure, wrong);
      return;
    }
    const over = this.#whyOver(closure);
    if (delayMs === undefined) this.#fail(closure, error);
    else if (over !== undefined) this.#out(closure, over);
    else {
      const again = (): void => void this.queue.release(closure);
      this.queue.delay(closure, delayMs === 0 ? undefined : new Timer(delayMs, again));
      this.#again(closure, error);
      if (delayMs === 0) again();
      this.#afterFlight();
    }
  }

  #again(closure: Closure, cause: unknown): void {
    this.#retried += 1;
    this.#listener.onRetry(closure, closure.attempts + 1, cause);
    closure.note(CLOSURE.runAgain);
  }

  /** The closure fails, and may fail its group: it settles before the group hears of it. */
  #fail(closure: Closure, value: unknown): void {
    const outcome: Outcome = { state: 'failed', value };
    this.#failures.note(closure.work.name, value);
    this.queue.decide(closure, outcome);
    closure.group?.failed(closure, value);
    this.#out(closure, outcome);
  }

  #out(closure: Closure, outcome: Outcome): void {
    this.queue.out(closure, outcome);
    this.#afterFlight();
  }

  #afterFlight(): void {
    if (this.queue.count('in-flight') === 0) this.changed();
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
  attachmentOf(coordinator).interrupted(new CancelledError('The cluster was stopped'));

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);
