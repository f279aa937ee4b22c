/** What becomes of closures: when a run ends, a worker is lost, something fails, or all stops. */

import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CancelledError, FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { Call, Closure, ClosureOutcome } from './closure.ts';
import type { ClosureQueue } from './closure-queue.ts';
import type { Cancellation } from './strategy.ts';

export type ClosureRulesOptions = {
  queue: ClosureQueue<Closure>;
  coordinator: Coordinator;
  /** How often a function is run again after its worker has died. */
  retries: number;
  /** Asks the run of a closure in flight to end; it ends or is lost later. */
  cancel: (closure: Closure, cancellation: Cancellation) => void;
  /** Something has left the line, or has ended. */
  onLeft: () => void;
  /** Nothing is in flight any more, or nothing gets in. */
  onChange: () => void;
};

export class ClosureRules {
  readonly #options: ClosureRulesOptions;
  readonly #queue: ClosureQueue<Closure>;
  readonly #inFlight = new Set<Closure>();
  /** Why no worker will come any more. */
  #failure: Error | undefined;
  #retried = 0;
  #isClosed = false;

  constructor(options: ClosureRulesOptions) {
    this.#options = options;
    this.#queue = options.queue;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** How often a function was put in line again because its worker was lost. */
  get retried(): number {
    return this.#retried;
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /** Nothing that is scheduled will be run. */
  get isOver(): boolean {
    return this.#failure !== undefined || this.#isClosed || this.#options.coordinator.shouldStop();
  }

  /** Why no worker will ever be ready. */
  whyHopeless(): { why: string; cause: unknown } | undefined {
    if (this.#failure !== undefined) {
      return { why: this.#failure.message, cause: this.#failure.cause ?? this.#failure };
    }
    if (this.#isClosed) return { why: 'the cluster is closed', cause: undefined };
    const { coordinator } = this.#options;
    if (!coordinator.shouldStop()) return undefined;
    return { why: 'the cluster was stopped', cause: coordinator.stopRecord?.error };
  }

  /** The next one; it is in flight from here on. */
  take(): Closure | undefined {
    const closure = this.#queue.take();
    if (closure !== undefined) this.#inFlight.add(closure);
    return closure;
  }

  /** It comes to this, wherever it is. If it runs, its run is asked to end. */
  decide(closure: Closure, outcome: ClosureOutcome): void {
    const { state, value } = outcome;
    if (closure.place === 'in-flight') {
      closure.decided = outcome;
      closure.settle(state, value);
      if (state === 'failed' && this.#queue.report(value)) this.#cancelOthers(value);
      this.#options.cancel(closure, { reason: value, replace: true });
    } else if (closure.place === 'queued') {
      closure.settle(state, value);
      if (state === 'failed') {
        if (this.#queue.failQueued(closure, value)) this.#cancelOthers(value);
      } else this.#queue.remove(closure);
    } else this.#queue.remove(closure, value); // it waits for room: its call rejects
    this.#options.onLeft();
  }

  /** Its run has ended. */
  ended(closure: Closure, { state, value }: ClosureOutcome): void {
    if (!this.#inFlight.delete(closure)) return; // the cluster has failed meanwhile
    if (closure.decided !== undefined || state !== 'failed') {
      closure.settle(state, value);
      this.#queue.end(closure);
    } else if (this.#isEcho(value)) {
      closure.settle('cancelled', this.#stopError());
      this.#queue.end(closure);
    } else if (isAbort(value) && (this.#queue.hasFailed || this.#isClosed)) {
      closure.settle('cancelled', value); // it was asked to end
      this.#queue.end(closure);
    } else {
      closure.settle('failed', value);
      if (this.#queue.fail(closure, value)) this.#cancelOthers(value);
    }
    this.#afterFlight();
  }

  /** Its worker is lost, or it was taken back. */
  returned(closure: Closure, wasStarted: boolean, cause: unknown): void {
    if (!this.#inFlight.delete(closure)) return;
    if (closure.decided !== undefined) {
      this.#queue.end(closure);
      this.#afterFlight();
      return;
    }
    if (wasStarted) closure.attempts += 1;
    const { name } = closure.work as Call;
    let why: string | undefined;
    // Without a cause it was taken back, because something else has failed: it is cancelled.
    if (closure.isMoved && cause !== undefined)
      why = `The arguments of '${name}' were moved to a worker that is lost`;
    else if (closure.attempts > this.#options.retries) {
      why = `'${name}' was started ${closure.attempts} times, and its worker was lost each time`;
    }
    if (why === undefined) {
      if (wasStarted) this.#retried += 1;
      this.#queue.putBack(closure);
    } else {
      const error = new UnavailableError(why, { cause });
      closure.settle('failed', error);
      if (this.#queue.fail(closure, error)) this.#cancelOthers(error);
    }
    this.#afterFlight();
  }

  /** No worker will come any more. */
  fail(error: Error): void {
    this.#failure = error;
    // A strategy may find out before it is even connected.
    queueMicrotask(() => {
      this.#queue.close(error, error);
      for (const closure of this.#inFlight) {
        this.#inFlight.delete(closure);
        closure.settle('failed', error);
        this.#queue.end(closure);
      }
      this.#options.onLeft();
      this.#options.onChange();
    });
  }

  /** Nothing gets in any more, and what runs is asked to end. */
  close(): void {
    this.#isClosed = true;
    const dropped = new CancelledError('The cluster was closed');
    this.#stopAll(new FailedPreconditionError('The cluster is closed'), dropped, dropped);
  }

  /** The cluster's coordinator was stopped. */
  stop(): void {
    const error = this.#stopError();
    this.#stopAll(error, error, this.#options.coordinator.signal.reason);
  }

  #afterFlight(): void {
    this.#options.onLeft();
    if (this.isIdle) this.#options.onChange();
  }

  /** What runs sees it by its signal, and may go on; what was not started never will be. */
  #cancelOthers(cause: unknown): void {
    const reason = new CancelledError('Another function has failed', { cause });
    for (const closure of this.#inFlight) {
      if (closure.decided === undefined) this.#options.cancel(closure, { reason, replace: false });
    }
  }

  /** Nothing gets in any more; what runs is asked to end, and then made to. */
  #stopAll(error: unknown, dropped: CancelledError, reason: unknown): void {
    this.#queue.close(error, dropped);
    for (const closure of this.#inFlight) {
      this.#options.cancel(closure, { reason, replace: true });
    }
    this.#options.onLeft();
    this.#options.onChange();
  }

  #stopError(): CancelledError {
    const record = this.#options.coordinator.stopRecord;
    const options = record?.error === undefined ? {} : { cause: record.error };
    return new CancelledError('The cluster was stopped', options);
  }

  /** What a function throws because the cluster was stopped is no failure of its own. */
  #isEcho(error: unknown): boolean {
    const record = this.#options.coordinator.stopRecord;
    if (record === undefined) return false;
    const isIt = (reported: unknown): boolean => Object.is(error, reported);
    return (
      isAbort(error) || isIt(record.error) || record.suppressed.some((each) => isIt(each.error))
    );
  }
}

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);
