/** One call of a function of the module: its work, its terms, its life. */

import { messageOf } from '../../base/thrown-value.ts';
import { ClosureInputError } from '../../errors/errors.ts';
import { CALL, CALL_TYPES, type CallEvents } from '../../events/timeline.ts';
import { CallSpan } from '../../telemetry/spans.ts';
import { type Movable, releaseArguments } from '../../values/to-thread.ts';
import { type PassedArguments } from '../../values/value.ts';
import { type Fate, wasStarted } from '../worker/messages.ts';
import { aboutOf } from '../worker/task-channel.ts';
import type { Placement, Priority } from './call-lines.ts';
import {
  type Life,
  next,
  type Outcome,
  outcomeOf,
  type Queued,
  type Settle,
} from './call-queue.ts';

/** A function of the module with its arguments, as it was scheduled. */
export type Work = {
  readonly name: string;
  /**
   * Values, or packed (value.ts): an ArrayBuffer for a thread of this process; a
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

export type TakenArguments = Pick<Work, 'args' | 'transfer' | 'hasVariables'>;

/** Ids are stored in Int32 claims (messages.ts), where numbers up to 0 mean something else. */
const MAX_ID = 2 ** 31 - 2;
let lastId = 0;

function nextId(): number {
  lastId = (lastId % MAX_ID) + 1;
  return lastId;
}

/** What hears of the calls of a cluster. One for all of them. */
export interface CallOwner {
  readonly coordinator: object;
  /** What the timeline of the cluster's coordinator has of its calls. */
  readonly events: CallEvents;
  /** The call has settled. */
  onSettled(call: Call, outcome: Outcome): void;
}

/** Calls whose callers share errors: those of `schedule`. The error of any other is its caller's. */
export interface Group {
  /**
   * @returns undefined if the call is queued; else a promise that resolves when it is, and rejects
   *   when it is refused
   */
  put(call: Call): Promise<void> | undefined;
  /** How a call settles that a worker has given back; undefined: it is queued again. */
  whyNot(call: Call): Outcome | undefined;
  /** The function of a call in flight has failed: it has settled so, and is about to be out. */
  failed(call: Call, error: unknown): void;
}

/**
 * Asked when the function has thrown an error of its own. @returns after how many milliseconds the
 * function is run again; undefined: it is not. What it throws becomes the error of the call
 */
export type RetryRule = (error: unknown, attempt: number) => number | undefined;

export type CallTerms = {
  /** How often it is run again: after the death of a worker that was running it, or an error. */
  retries: number;
  group?: Group | undefined;
  /** After which errors of its own; undefined: after none. */
  retryRule?: RetryRule | undefined;
  /** It waits outside the line at first. */
  isHeld?: boolean;
  /** Of OpenTelemetry, when the call was made (`activeContext`): the call is traced. */
  context?: unknown;
  /** On a node: how often it was started elsewhere, and the context for its attempts. */
  attempts?: number;
  contextText?: string | undefined;
  /** How long each attempt may run. */
  runTimeoutMs?: number | undefined;
  priority?: Priority;
  /** Which workers may run it; undefined: any. */
  placement?: Placement | undefined;
};

/** Is given what a function reports, each value packed, until the call has settled. */
type Report = (values: readonly Uint8Array[], call: Call) => void;

const TOLD: Life = { at: 'out', isTold: true };

const UNLIMITED: CallTerms = { retries: Number.POSITIVE_INFINITY };

export class Call implements Queued {
  /** Unique in this thread, until 2^31 - 2 other calls have been made. */
  readonly id: number = nextId();
  readonly retries: number;
  readonly group: Group | undefined;
  readonly retryRule: RetryRule | undefined;
  readonly runTimeoutMs: number | undefined;
  readonly priority: Priority;
  readonly placement: Placement | undefined;
  /** It waits outside the line at first: for RemoteValues, or for a stored result. */
  readonly isHeld: boolean;
  rank = 0;
  order = 0;
  number = 0;
  /** The context for its attempts, as text: of its span, or of that of the node's coordinator. */
  readonly context: string | undefined;
  /** When it was made (performance.now()). */
  readonly madeAt: number = performance.now();
  // What follows is written here alone.
  life: Life = { at: 'new' };
  work: Work;
  /** The arguments were moved to a worker: the call cannot be sent to another worker. */
  isMoved = false;
  /** How often it was started and then lost its worker, or failed and is run again. */
  attempts: number;
  /** How long a worker thread may take to read and begin it before it is asked (live-worker.ts). */
  patienceMs = 100;
  /** How many workers have died while they ran it. */
  deaths = 0;
  #takenAt: number | undefined;
  /** A worker may have died as it read it. */
  #mayBeUnreadable = false;
  /** After how many errors of its own it was run again. */
  #failures = 0;
  /** What is told of its end, until it was told. */
  #settle: Settle | undefined;
  #atEnd: (() => void)[] | undefined;
  readonly #owner: CallOwner | undefined;
  readonly #report: Report | undefined;
  /** Its span, if it is traced. */
  readonly #span: CallSpan | undefined;

  /** @param settle - left out on a node, where nobody waits for its value */
  constructor(
    work: Work,
    settle?: Settle,
    owner?: CallOwner,
    terms: CallTerms = UNLIMITED,
    report?: Report,
  ) {
    this.work = work;
    this.retries = terms.retries;
    this.group = terms.group;
    this.retryRule = terms.retryRule;
    this.isHeld = terms.isHeld ?? false;
    this.attempts = terms.attempts ?? 0;
    this.runTimeoutMs = terms.runTimeoutMs;
    this.priority = terms.priority ?? 'normal';
    this.placement = terms.placement;
    this.#settle = settle;
    this.#owner = owner;
    this.#report = report;
    this.context = terms.contextText;
    const { context } = terms;
    if (context === undefined || owner === undefined) return;
    this.#span = CallSpan.begin(work.name, context, {
      'allstop.coordinator': aboutOf(owner.coordinator).coordinator,
      'allstop.call': this.id,
    });
    this.context = this.#span?.text ?? this.context;
  }

  /** How it has settled, while its attempt goes on. */
  get decided(): Outcome | undefined {
    return this.life.at === 'in-flight' ? this.life.outcome : undefined;
  }

  /** Milliseconds until a worker first took it; undefined: none has. */
  get waitedMs(): number | undefined {
    return this.#takenAt === undefined ? undefined : this.#takenAt - this.madeAt;
  }

  /**
   * It may have killed its worker: no other call is sent to the
   * worker that runs it, until it has ended.
   */
  get isSuspect(): boolean {
    return this.deaths > 0 || this.#mayBeUnreadable;
  }

  /** Its workers have died so often that it is not run again. */
  get isSpent(): boolean {
    return this.deaths + this.#failures > this.retries;
  }

  /** About how many bytes its arguments take. */
  get bytes(): number {
    return this.work.bytes;
  }

  become(to: Life, worker?: number): void {
    const from = this.life;
    this.life = next(from, to);
    if (from.at === 'delayed') from.timer?.clear();
    if (to.at !== 'in-flight' || from.at === 'in-flight') return;
    this.#takenAt ??= performance.now();
    this.note(CALL.started, worker);
  }

  tell(): void {
    const outcome = outcomeOf(this.life);
    const settle = this.#settle;
    const ends = this.#atEnd;
    this.#atEnd = undefined;
    if (outcome !== undefined && settle !== undefined) {
      const { state, value } = outcome;
      this.#settle = undefined;
      if (settle(state, value)) {
        this.note(CALL.ended);
        this.#endSpan(state === 'ready' ? undefined : { error: value });
        this.#owner?.onSettled(this, outcome);
      }
    }
    if (ends !== undefined) for (const end of ends) end();
    if (this.life.at !== 'out') return;
    releaseArguments(this.work.args);
    if ('refusal' in this.life) return this.#endSpan({ error: this.life.refusal });
    this.life = TOLD;
    // A node that is away may have it still, and knows it by its name.
    if (this.attempts > 0 || this.isSuspect) {
      this.work = { ...this.work, args: [], holds: undefined };
    }
  }

  /** Calls `end` once, when the call has settled, or was refused. */
  atEnd(end: () => void): void {
    (this.#atEnd ??= []).push(end);
  }

  /** It comes back from a worker. @returns whether that was an attempt, which the timeline notes */
  lost(fate: Fate): boolean {
    // One that may have killed the worker that read it is sent alone from now on.
    if (fate === 'unread') this.#mayBeUnreadable = true;
    if (!wasStarted(fate)) return false;
    // A call that may not run again is spent, whoever has ended the worker.
    if (fate === 'running' || this.retries === 0) this.deaths += 1;
    this.attempts += 1;
    this.note(CALL.lost);
    return true;
  }

  /** The worker from which it came back as this has it still. @returns whether its attempt goes on */
  found(fate: Fate | undefined): boolean {
    if (fate !== 'running') return false;
    this.attempts -= 1;
    this.deaths -= 1;
    return true;
  }

  /**
   * Its function has thrown an error of its own.
   *
   * @returns the milliseconds until it is run again; undefined: it is not
   * @throws what `retryOn` or `retryDelayMs` throws; TypeError, RangeError: what they return
   */
  failed(error: unknown): number | undefined {
    const isLast = this.deaths + this.#failures >= this.retries;
    // After a ClosureInputError: the function was not started.
    if (this.isMoved || isLast || error instanceof ClosureInputError) return undefined;
    const delayMs = this.retryRule?.(error, this.attempts + 1);
    if (delayMs === undefined) return undefined;
    this.attempts += 1;
    this.#failures += 1;
    return delayMs;
  }

  /**
   * Why it is not run again after it came back.
   *
   * @param cause - of the loss of its worker. Undefined: it was recalled
   * @returns undefined if it can be queued again
   */
  whyNotAgain(cause: unknown): string | undefined {
    // A moved call that was recalled is one that is dropped, after a failure or a stop.
    if (this.isMoved && cause !== undefined) {
      return `The arguments of '${this.work.name}' were moved to a worker that is lost`;
    }
    return this.isSpent ? lossesOf(this, cause) : undefined;
  }

  /** Its arguments go to a worker, and cannot go to another. */
  move(): void {
    this.isMoved = true;
  }

  /** The next worker may take longer to begin it. */
  allowLonger(): void {
    this.patienceMs *= 10;
  }

  /**
   * Takes the arguments that move from the caller. The queue calls this when the call has passed
   * every check: a refused call must leave the caller its objects.
   */
  enter(): void {
    this.arrive(this.work);
    this.note(CALL.queued);
  }

  /** `work` is what is sent. */
  arrive(work: Work): void {
    const { take } = work;
    this.work = take === undefined ? work : { ...work, ...take(), take: undefined };
  }

  /** Notes in the timeline what has become of it. `event`: a value of CALL. */
  note(event: number, worker?: number): void {
    this.#span?.note(CALL_TYPES[event] ?? '');
    this.#owner?.events.note(event, this.id, this.work.name, worker);
  }

  /** Its function has reported values, each of which is packed. */
  progressed(values: readonly Uint8Array[]): void {
    if (this.life.at === 'in-flight' && this.decided === undefined) this.#report?.(values, this);
  }

  #endSpan(failure: { error: unknown } | undefined): void {
    const isLost = this.isSpent || this.#takenAt === undefined;
    this.#span?.end(isLost ? this.attempts : this.attempts + 1, failure);
  }
}

/** How often it has lost its worker, for people. */
export function lossesOf({ work, deaths, attempts, retries }: Call, cause: unknown): string {
  const times = deaths === 1 ? 'once' : `${deaths} times`;
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  const last = cause === undefined ? '' : `. Last: ${messageOf(cause)}`;
  return `'${work.name}' lost its worker ${times} in ${tries} (retries: ${retries})${last}`;
}
