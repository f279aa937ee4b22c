/**
 * Decides whether a closure settles, is queued again or is cancelled: when its attempt ends, its
 * worker is lost, a function fails, or the cluster stops.
 */

import { describe, messageOf } from '../../base/thrown-value.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CLOSURE } from '../../coordinator/timeline/closure-events.ts';
import { CancelledError, FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { Call, Closure, ClosureOutcome } from './closure.ts';
import type { ClosureQueue } from './closure-queue.ts';
import type { Cancellation, ClusterHost } from './strategy.ts';

export type ClosureRulesOptions = {
  queue: ClosureQueue<Closure>;
  coordinator: Coordinator;
  /** How often a function is run again after its worker was lost. */
  retries: number;
  cancelGraceMs: number;
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
}

export class ClosureRules implements ClusterHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly #queue: ClosureQueue<Closure>;
  readonly #retries: number;
  readonly #listener: ClosureRulesListener;
  /** Why no worker will ever start any more; undefined while one may. */
  #failure: Error | undefined;
  #retried = 0;
  #isClosed = false;

  constructor(
    { queue, coordinator, retries, cancelGraceMs }: ClosureRulesOptions,
    listener: ClosureRulesListener,
  ) {
    this.#queue = queue;
    this.coordinator = coordinator;
    this.#retries = retries;
    this.cancelGraceMs = cancelGraceMs;
    this.#listener = listener;
  }

  /** How often a function was queued again because its worker was lost. */
  get retried(): number {
    return this.#retried;
  }

  get isIdle(): boolean {
    return this.#queue.inFlight.size === 0;
  }

  /** Whether the cluster has failed, was closed or stopped: it runs nothing more. */
  get isOver(): boolean {
    return this.#failure !== undefined || this.#isClosed || this.coordinator.shouldStop();
  }

  /** @returns undefined as long as workers can still become ready */
  whyNeverReady(): { why: string; cause: unknown } | undefined {
    if (this.#failure !== undefined) {
      return { why: this.#failure.message, cause: this.#failure.cause ?? this.#failure };
    }
    if (this.#isClosed) return { why: 'the cluster is closed', cause: undefined };
    if (!this.coordinator.shouldStop()) return undefined;
    return { why: 'the cluster was stopped', cause: this.coordinator.stopRecord?.error };
  }

  // ---------------------------------------------------------------- called by an engine

  take(): Closure | undefined {
    const closure = this.#queue.take();
    closure?.note(CLOSURE.started);
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

  ended(closure: Closure, { state, value }: ClosureOutcome): void {
    if (closure.place !== 'in-flight') return; // `failed` has settled it
    if (closure.decided !== undefined || state !== 'failed') {
      closure.settle(state, value);
      this.#queue.end(closure);
    } else if (this.#isEcho(value)) {
      closure.settle('cancelled', this.#stopError());
      this.#queue.end(closure);
    } else if (isAbort(value) && (this.#queue.hasFailed || this.#isClosed)) {
      closure.settle('cancelled', value); // the function obeyed our cancellation
      this.#queue.end(closure);
    } else {
      closure.settle('failed', value);
      if (this.#queue.fail(closure, value)) this.#cancelOthers(closure, value);
    }
    this.#afterFlight();
  }

  returned(closure: Closure, wasStarted: boolean, cause?: unknown): void {
    if (closure.place !== 'in-flight') return; // `failed` has settled it
    if (closure.decided !== undefined) {
      this.#queue.end(closure);
      this.#afterFlight();
      return;
    }
    if (wasStarted) {
      closure.attempts += 1;
      closure.note(CLOSURE.lost);
    }
    const why = this.#whyNotAgain(closure, cause);
    if (why === undefined) {
      if (wasStarted) this.#retried += 1;
      const isQueued = this.#queue.putBack(closure);
      if (wasStarted && isQueued) closure.note(CLOSURE.runAgain);
    } else {
      const error = new UnavailableError(why, { cause });
      closure.settle('failed', error);
      if (this.#queue.fail(closure, error)) this.#cancelOthers(closure, error);
    }
    this.#afterFlight();
  }

  reclaim(given: ReadonlyMap<Closure, boolean>): Closure[] {
    const back = this.#queue.reclaim([...given.keys()]);
    for (const closure of back) {
      if (given.get(closure) !== true) continue;
      closure.attempts -= 1;
      this.#retried -= 1;
    }
    return back;
  }

  offered(closure: Closure, outcome: ClosureOutcome): boolean {
    const { place, decided } = closure;
    if ((place !== 'queued' && place !== 'in-flight') || decided !== undefined) return false;
    // An obeyed cancellation is no result: the other attempt goes on.
    if (outcome.state === 'failed' && (isAbort(outcome.value) || this.#isEcho(outcome.value))) {
      return false;
    }
    this.decide(closure, outcome);
    return true;
  }

  changed(): void {
    this.#listener.onChange();
  }

  failed(error: Error): void {
    this.#failure = error;
    // In a microtask, since `connect` may call this before it has returned the engine.
    queueMicrotask(() => {
      this.#queue.close(error, error);
      for (const closure of this.#queue.inFlight) {
        closure.settle('failed', error);
        this.#queue.end(closure);
      }
      this.#listener.onLeft();
      this.#listener.onChange();
    });
  }

  // ---------------------------------------------------------------- called by ClusterCoordinator

  /** Settles a closure, wherever it is, with `outcome`. Cancels its attempt if it is in flight. */
  decide(closure: Closure, outcome: ClosureOutcome): void {
    const { state, value } = outcome;
    if (closure.place === 'in-flight') {
      closure.decided = outcome;
      closure.settle(state, value);
      if (state === 'failed' && this.#queue.report(closure, value)) {
        this.#cancelOthers(closure, value);
      }
      // Ready while in flight: another worker had it, too, and was first.
      const reason = state === 'ready' ? new CancelledError('Another worker was first') : value;
      this.#listener.cancel(closure, { reason, replace: true });
    } else if (closure.place === 'queued') {
      closure.settle(state, value);
      if (state === 'failed') {
        if (this.#queue.failQueued(closure, value)) this.#cancelOthers(closure, value);
      } else this.#queue.remove(closure);
    } else this.#queue.remove(closure, value); // it waits for room: `schedule` rejects
    this.#listener.onLeft();
  }

  /** Drops the queued closures and cancels those in flight. */
  close(): void {
    this.#isClosed = true;
    const dropped = new CancelledError('The cluster was closed');
    this.#stopAll(new FailedPreconditionError('The cluster is closed'), dropped, dropped);
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
    const { attempts } = closure;
    if (attempts <= this.#retries) return undefined;
    const times = attempts === 1 ? 'once' : `${attempts} times`;
    const last = cause === undefined ? '' : `. Last: ${messageOf(cause)}`;
    return `'${name}' lost its worker ${times} (retries: ${this.#retries})${last}`;
  }

  #afterFlight(): void {
    this.#listener.onLeft();
    if (this.isIdle) this.#listener.onChange();
  }

  /** Aborts the signals of the functions that run, which may go on; recalls the others. */
  #cancelOthers(failed: Closure, error: unknown): void {
    const text = `Cancelled because ${failureOf(failed, error)}`;
    const reason = new CancelledError(text, { cause: error });
    for (const closure of this.#queue.inFlight) {
      if (closure.decided === undefined) this.#listener.cancel(closure, { reason, replace: false });
    }
  }

  /** Closes the queue, cancels the closures in flight, and replaces workers that do not obey. */
  #stopAll(error: unknown, dropped: CancelledError, reason: unknown): void {
    this.#queue.close(error, dropped);
    for (const closure of this.#queue.inFlight) {
      this.#listener.cancel(closure, { reason, replace: true });
    }
    this.#listener.onLeft();
    this.#listener.onChange();
  }

  #stopError(): CancelledError {
    const record = this.coordinator.stopRecord;
    const options = record?.error === undefined ? {} : { cause: record.error };
    return new CancelledError('The cluster was stopped', options);
  }

  /** Whether a function threw `error` because the cluster was stopped: no failure of its own. */
  #isEcho(error: unknown): boolean {
    const record = this.coordinator.stopRecord;
    if (record === undefined) return false;
    const isIt = (reported: unknown): boolean => Object.is(error, reported);
    return (
      isAbort(error) || isIt(record.error) || record.suppressed.some((each) => isIt(each.error))
    );
  }
}

/** The `onFailure` of the cluster's queue. Closures of the same name share one error. */
export function cancelledBy(failed: Closure, error: unknown): (dropped: Closure) => unknown {
  if (error instanceof CancelledError) return () => error;
  const errors = new Map<string, CancelledError>();
  return (dropped) => {
    const name = nameOf(dropped);
    let shared = errors.get(name);
    if (shared === undefined) {
      const text = `'${name}' was cancelled because ${failureOf(failed, error)}. Schedule it again`;
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
