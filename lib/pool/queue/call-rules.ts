/**
 * Decides whether a call settles, is queued again (`retries`, `retryOn`) or is cancelled: when its
 * attempt ends, its worker is lost, its caller gives it up, or the cluster ends.
 */

import { withCallersFrames } from '../../base/callers-frames.ts';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { CALL } from '../../events/timeline.ts';
import type { Fate, Resource } from '../worker/messages.ts';
import type { VariableSource } from '../worker/variables.ts';
import { type Call, lossesOf } from './call.ts';
import { nowhere, type Placement } from './call-lines.ts';
import type { CallQueue, End, Outcome } from './call-queue.ts';
import type { Cancellation, ClusterHost, EngineEvent, QueuedWork } from './strategy.ts';
import { overdue } from './time-limits.ts';

// Which functions have failed in the last minutes, for an operator.

const LASTS_MS = 5 * 60_000;
const MOST_NAMES = 100;
const LONGEST_TEXT = 200;

type Entry = { since: number; at: number; count: number; last: string };

class RecentFailures {
  readonly #entries = new Map<string, Entry>();

  note(name: string, error: unknown): void {
    const now = performance.now();
    const known = this.#entries.get(name);
    const last = messageOf(error).slice(0, LONGEST_TEXT);
    const isOld = known === undefined || now - known.since > LASTS_MS;
    if (known === undefined && this.#entries.size >= MOST_NAMES) return;
    const [since, count] = isOld ? [now, 1] : [known.since, known.count + 1];
    this.#entries.set(name, { since, at: now, count, last });
  }

  get recent(): { name: string; count: number; last: string }[] {
    const now = performance.now();
    return [...this.#entries].flatMap(([name, { at, count, last }]) =>
      now - at > LASTS_MS ? [] : [{ name, count, last }],
    );
  }
}

type Given = 'queue' | 'coordinator' | 'cancelGraceMs' | 'retries' | 'variables';

export interface CallRulesListener {
  /** What each worker makes before it takes calls. */
  resources(): Iterable<Resource>;
  /** Asks the attempt of a call in flight to end (`Engine.cancel`). */
  cancel(call: Call, cancellation: Cancellation): void;
  /** The workers have changed, or the queue is closed. */
  onChange(): void;
  /** Nothing is in flight any more. */
  onLanded(): void;
  /** The function of a call has run for so long, with a result or an error. */
  onRun(call: Call, microseconds: number): void;
  /** A call that was started is run again; `attempt` is the number of its next attempt. */
  onRetry(call: Call, attempt: number, cause: unknown): void;
  /** `Engine.whyNowhere` */
  whyNowhere(placement: Placement): string | undefined;
  onEvent(...event: EngineEvent): void;
}

export class CallRules implements ClusterHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  readonly queue: CallQueue<Call>;
  readonly #listener: CallRulesListener;
  #retried = 0;
  readonly #failures = new RecentFailures();

  constructor(
    { queue, coordinator, cancelGraceMs, retries, variables }: Pick<CallRules, Given>,
    listener: CallRulesListener,
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

  ended(call: Call, outcome: Outcome, microseconds?: number): void {
    if (call.life.at !== 'in-flight') return; // `failed` has settled it
    const { state, value } = outcome;
    if (microseconds !== undefined) this.#listener.onRun(call, microseconds);
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
    const error = this.#nowhere(call);
    const over = this.#whyOver(call);
    if (error !== undefined) this.#out(call, { state: 'failed', value: error });
    else if (why !== undefined) {
      this.#fail(call, withCallersFrames(new UnavailableError(why, { cause })));
    } else if (over !== undefined) this.#out(call, over);
    else {
      this.queue.putBack(call);
      // Of what ran beside it when it died first, nothing dies again.
      if (call.deaths > 1) this.#failures.note(call.work.name, lossesOf(call, cause));
      if (wasStarted) this.#again(call, cause);
      this.#afterFlight();
    }
  }

  reclaim(given: ReadonlyMap<Call, Fate>): Call[] {
    const back = this.queue.reclaim([...given.keys()]);
    for (const call of back) {
      if (call.found(given.get(call))) this.#retried -= 1;
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
    this.#listener.onRun(call, microseconds);
    if (state === 'failed') this.#failures.note(call.work.name, value);
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
    const oldest = this.queue.line.firsts
      .toSorted((one, other) => one.madeAt - other.madeAt)
      .map(({ work: { name }, madeAt, placement }) => {
        return { name, ms: performance.now() - madeAt, placement };
      });
    return { waiting: this.queue.queued, oldest, failures: this.#failures.recent };
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
      for (const call of this.#inFlight()) this.#out(call, dropped);
      this.changed();
    });
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
    this.#listener.cancel(call, { reason, replace: true });
  }

  /**
   * The workers have become fewer: fails each call for which there will never be a worker.
   *
   * @param waiting - those that were not put in the queue yet
   */
  failUnplaceable(waiting: readonly Call[]): void {
    const isQueued = ({ life }: Call): boolean => life.at !== 'in-flight';
    for (const call of [...this.queue.some(isQueued), ...waiting]) {
      const error = this.#nowhere(call);
      if (error !== undefined) this.decide(call, { state: 'failed', value: error });
    }
  }

  /**
   * Ends the cluster: drops what has not begun, and cancels what is in flight with `reason`; workers
   * that do not obey are replaced.
   */
  end(end: End, reason: unknown): void {
    this.queue.close(end);
    for (const call of this.#inFlight()) {
      this.#listener.cancel(call, { reason, replace: true });
    }
    this.changed();
  }

  #inFlight(): Call[] {
    return this.queue.some(({ life }) => life.at === 'in-flight');
  }

  #nowhere({ placement }: Call): RangeError | undefined {
    if (placement === undefined) return undefined;
    const why = this.#listener.whyNowhere(placement);
    return why === undefined ? undefined : nowhere(placement, why);
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
    else {
      const again = (): void => void this.queue.release(call);
      this.#failures.note(call.work.name, error);
      this.queue.delay(call, delayMs === 0 ? undefined : new Timer(delayMs, again));
      this.#again(call, error);
      if (delayMs === 0) again();
      this.#afterFlight();
    }
  }

  #again(call: Call, cause: unknown): void {
    this.#retried += 1;
    this.#listener.onRetry(call, call.attempts + 1, cause);
    call.note(CALL.runAgain);
  }

  /** The call fails, and may fail its group: it settles before the group hears of it. */
  #fail(call: Call, value: unknown): void {
    const outcome: Outcome = { state: 'failed', value };
    this.#failures.note(call.work.name, value);
    this.queue.decide(call, outcome);
    call.group?.failed(call, value);
    this.#out(call, outcome);
  }

  #out(call: Call, outcome: Outcome): void {
    this.queue.out(call, outcome);
    this.#afterFlight();
  }

  #afterFlight(): void {
    if (this.queue.count('in-flight') === 0) this.#listener.onLanded();
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

const isAbort = (value: unknown): boolean =>
  value instanceof Error && (value.name === 'AbortError' || value instanceof CancelledError);
