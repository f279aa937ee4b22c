/** A closure: a call on its way to a worker and back, with its state. */

import { Timer } from '../../base/timer.ts';
import { CLOSURE, type ClosureEvents } from '../../events/timeline/closure-events.ts';
import { CLOSURE_TYPES } from '../../events/timeline/events.ts';
import type { CallSpan } from '../../telemetry/spans.ts';
import type { PassedArguments } from '../../values/passed-arguments.ts';
import { releaseArguments } from '../../values/to-thread.ts';
import type { Fate, WorkerResource } from '../worker/protocol.ts';
import type { Movable } from '../worker/transfer.ts';
import type { Dropped, Era, Place, Queued } from './closure-queue.ts';
import type { Priority } from './lines/closure-lines.ts';
import type { Placement } from './lines/placement.ts';
import { type RemoteState, RemoteValue, type Settle } from './remote-value.ts';

/** A function of the module with its arguments, as it was scheduled. */
export type Call = {
  readonly kind: 'call';
  readonly name: string;
  /**
   * Values, or packed (packed-arguments.ts): an ArrayBuffer for a thread of this process; a
   * Uint8Array for a process or node, where the worker packs its result, too.
   */
  readonly args: PassedArguments;
  /** About how many bytes of memory the arguments take while they wait. */
  readonly bytes: number;
  /** The arguments that are PerWorkerValues: [index, id, index, id ...]. */
  readonly perWorker: readonly number[] | undefined;
  /** Those, which are not forgotten while the call may need them. */
  readonly holds?: readonly unknown[] | undefined;
  /** Whether a Variable is among the arguments: the worker puts its own in its place. */
  readonly hasVariables: boolean;
  /** Its result is kept: its function may not write to variables. */
  readonly isKeyed?: boolean;
  /** The parts of the arguments that are moved to the worker. */
  readonly transfer: readonly Movable[];
  /** Takes the arguments that move from the caller. Undefined if they were taken, or none move. */
  readonly take?: (() => TakenArguments) | undefined;
};

export type TakenArguments = Pick<Call, 'args' | 'transfer' | 'hasVariables'>;

export type ClosureOutcome = { state: Exclude<RemoteState, 'pending'>; value: unknown };

/** Ids are stored in Int32 claims (protocol.ts), where numbers up to 0 mean something else. */
const MAX_ID = 2 ** 31 - 2;
let last = 0;

function nextId(): number {
  last = (last % MAX_ID) + 1;
  return last;
}

/** What settles the value of a closure, and hears of it. One for all closures of a cluster. */
export interface ClosureOwner {
  /** What the timeline of the cluster's coordinator has of its closures. */
  readonly events: ClosureEvents;
  /** The closure has settled. */
  onSettled(closure: Closure, state: ClosureOutcome['state']): void;
  /** The closure has settled, and no worker runs it any more. May be called twice. */
  onOver(closure: Closure): void;
  /** The caller cancels the closure, which has not settled. */
  cancel(closure: Closure, reason: unknown): void;
}

/**
 * Asked when the function has thrown an error of its own. @returns after how many milliseconds the
 * function is run again; undefined: it is not. What it throws becomes the error of the call
 */
export type RetryRule = (error: unknown, attempt: number) => number | undefined;

export type ClosureOptions = {
  /** The call is its caller's own: its error is told to nobody else (`cluster.run`). */
  isOwn: boolean;
  /** How often it is run again: after the death of a worker that was running it, or an error. */
  retries: number;
  /** After which errors of its own; undefined: after none. */
  retryRule?: RetryRule | undefined;
  /** It waits outside the line at first. */
  isHeld?: boolean;
  /** On a node: how often it was started elsewhere, and the context for its attempts. */
  attempts?: number;
  contextText?: string | undefined;
  /** How long each attempt may run. */
  runTimeoutMs?: number | undefined;
  priority?: Priority;
  /** Which workers may run it; undefined: any. */
  placement?: Placement | undefined;
};

const SCHEDULED: ClosureOptions = { isOwn: false, retries: Number.POSITIVE_INFINITY };

export class Closure implements Queued {
  place: Place = 'new';
  era: Era | undefined;
  /** Unique in this thread, until 2^31 - 2 other closures have been made. */
  readonly id: number = nextId();
  /** A call; or a resource, which one worker has to make before that worker takes calls. */
  work: Call | WorkerResource;
  readonly isOwn: boolean;
  readonly retries: number;
  readonly retryRule: RetryRule | undefined;
  readonly runTimeoutMs: number | undefined;
  readonly priority: Priority;
  readonly placement: Placement | undefined;
  rank = 0;
  order = 0;
  /** When it was made, and when a worker first took it (performance.now()). */
  readonly madeAt: number = performance.now();
  takenAt: number | undefined;
  /** It waits outside the line: for RemoteValues among its arguments, or for a stored result. */
  isHeld: boolean;
  /** Its result was stored before: it has not been run. */
  isKept = false;
  /** The arguments were moved to a worker: the closure cannot be sent to another worker. */
  isMoved = false;
  /** How often it was started and then lost its worker, or failed and is run again. */
  attempts: number;
  /** How long a worker thread may take to read and begin it before it is asked (silence.ts). */
  patienceMs = 100;
  /** How many workers have died while they ran it. */
  deaths = 0;
  /** How many workers have died that may have been running it: nobody can tell. */
  doubts = 0;
  /** After how many errors of its own it was run again. */
  failures = 0;
  /** Until then it is delayed (`Place`). */
  #delay: Timer | undefined;
  /** The outcome by a deadline or signal, set while the attempt of the settled closure goes on. */
  decided: ClosureOutcome | undefined;
  readonly #settle: Settle | undefined;
  readonly #owner: ClosureOwner | undefined;
  /** The RemoteValue, which the program has, of a scheduled closure. */
  remote: RemoteValue<unknown> | undefined;
  /** Is given what its function reports, each value packed. Set by `report`. */
  onProgress: ((values: readonly Uint8Array[]) => void) | undefined;
  /** Its span, if it is traced. */
  span: CallSpan | undefined;
  /** The context for its attempts, as text: of its span, or of that of the node's coordinator. */
  context: string | undefined;
  /** Called when it has settled, or was refused. */
  #atEnd: (() => void)[] | undefined;

  /** @param settle - left out for a resource, which has no RemoteValue */
  constructor(
    work: Call | WorkerResource,
    settle?: Settle,
    owner?: ClosureOwner,
    options: ClosureOptions = SCHEDULED,
  ) {
    const { isOwn, retries, retryRule, runTimeoutMs, priority = 'normal', placement } = options;
    const { isHeld = false, attempts = 0, contextText } = options;
    this.work = work;
    this.isOwn = isOwn;
    this.retries = retries;
    this.retryRule = retryRule;
    this.isHeld = isHeld;
    this.attempts = attempts;
    this.context = contextText;
    this.runTimeoutMs = runTimeoutMs;
    this.priority = priority;
    this.placement = placement;
    this.#settle = settle;
    this.#owner = owner;
  }

  /**
   * It may have killed its worker: no other closure is sent to the
   * worker that runs it, until it has ended.
   */
  get isSuspect(): boolean {
    return this.deaths + this.doubts > 0;
  }

  /** Its workers have died so often that it is not run again. */
  get isSpent(): boolean {
    return this.deaths + this.failures > this.retries;
  }

  /** A worker has taken it. */
  taken(): void {
    this.takenAt ??= performance.now();
    this.note(CLOSURE.started);
  }

  /** It comes back from a worker. @returns whether that was an attempt, which the timeline notes */
  lost(fate: Fate): boolean {
    if (fate === 'unsure') this.doubts += 1;
    if (fate === 'running') this.deaths += 1;
    const wasStarted = fate === 'running' || fate === 'ended';
    if (!wasStarted) return false;
    this.attempts += 1;
    this.note(CLOSURE.lost);
    return true;
  }

  /** The worker from which it came back as this has it still. @returns whether its attempt goes on */
  found(fate: Fate | undefined): boolean {
    if (fate === 'unsure') this.doubts -= 1;
    if (fate !== 'running') return false;
    this.attempts -= 1;
    this.deaths -= 1;
    return true;
  }

  /** Its function has failed with an error of its own, and is run again. */
  failed(): void {
    this.attempts += 1;
    this.failures += 1;
  }

  /** Its outcome is decided while its attempt goes on. */
  decide(outcome: ClosureOutcome): void {
    this.decided = outcome;
    this.settle(outcome.state, outcome.value);
  }

  /** Its arguments go to a worker, and cannot go to another. */
  move(): void {
    this.isMoved = true;
  }

  /** The next worker may take longer to begin it. */
  allowLonger(): void {
    this.patienceMs *= 10;
  }

  /** Its result is stored, or the store has failed: it is not run. */
  keep(): void {
    this.isKept = true;
  }

  /** It does not wait for a stored result any more. */
  letIn(): void {
    this.isHeld = false;
  }

  /** The program has its RemoteValue. */
  isOf(remote: RemoteValue<unknown>): void {
    this.remote = remote;
  }

  /** Its attempts are part of this trace. */
  trace(span: CallSpan | undefined): void {
    this.span = span;
    this.context = span?.text;
  }

  /** It is delayed, and calls `over` after so many milliseconds, unless it settles before. */
  delay(ms: number, over: () => void): void {
    this.#delay = new Timer(ms, over);
  }

  /**
   * Takes the arguments that move from the caller. The queue calls this when the call has passed
   * every check: a refused call must leave the caller its objects.
   */
  enter(): void {
    if (this.work.kind === 'call' && this.work.take !== undefined) {
      this.work = { ...this.work, ...this.work.take(), take: undefined };
    }
    this.note(CLOSURE.queued);
  }

  /** The arguments that it has waited for are there: `call` is what is sent. */
  arrive(call: Call): void {
    this.isHeld = false;
    this.work = call.take === undefined ? call : { ...call, ...call.take(), take: undefined };
  }

  /** About how many bytes its arguments take. */
  get bytes(): number {
    return this.work.kind === 'call' ? this.work.bytes : 0;
  }

  /** Only the first call has an effect. */
  settle(state: ClosureOutcome['state'], value: unknown): void {
    if (this.#settle?.(state, value) === true) {
      this.note(CLOSURE.ended);
      this.#endSpan(state === 'ready' ? undefined : { error: value });
      this.#owner?.onSettled(this, state);
      if (this.place !== 'in-flight') this.leave();
    }
    this.#delay?.clear();
    this.release();
  }

  /** Calls `end` once, when the closure has settled, or was refused. */
  atEnd(end: () => void): void {
    this.#atEnd ??= [];
    this.#atEnd.push(end);
  }

  /** Nothing waits for the end of the closure any more. */
  release(): void {
    const ends = this.#atEnd ?? [];
    this.#atEnd = undefined;
    for (const end of ends) end();
  }

  /** The closure has settled, and no worker runs it any more. */
  leave(): void {
    if (this.work.kind === 'call') releaseArguments(this.work.args);
    this.#owner?.onOver(this);
  }

  /** Notes in the timeline what has become of it. `event`: a value of CLOSURE. */
  note(event: number): void {
    this.span?.note(CLOSURE_TYPES[event] as string);
    this.#owner?.events.note(event, this.id, (this.work as Call).name);
  }

  #endSpan(failure: { error: unknown } | undefined): void {
    const isLost = this.isSpent || this.takenAt === undefined;
    this.span?.end(isLost ? this.attempts : this.attempts + 1, failure);
  }

  /** It could not be queued. */
  refuse(error: unknown): void {
    this.#endSpan({ error });
  }

  /** Its function has reported values, each of which is packed. */
  progressed(values: readonly Uint8Array[]): void {
    if (this.remote !== undefined) RemoteValue.report(this.remote, values);
    this.onProgress?.(values);
  }

  /** What its function reports goes to `onProgress`. */
  report(onProgress: (values: readonly Uint8Array[]) => void): void {
    this.onProgress = onProgress;
  }

  /** `RemoteValue.cancel`. */
  cancel(reason: unknown): void {
    this.#owner?.cancel(this, reason);
  }

  /** The queue calls it for closures that no worker will run. */
  drop({ state, value }: Dropped): void {
    this.settle(state, value);
  }
}
