/** A closure: a call on its way to a worker and back, with its state. */

import type { TransferListItem } from 'node:worker_threads';
import { CLOSURE, type ClosureEvents } from '../../coordinator/timeline/closure-events.ts';
import type { Resource } from '../worker/protocol.ts';
import type { Place, Queued } from './closure-queue.ts';
import type { RemoteState, Settle } from './remote-value.ts';

/** A function of the module with its arguments, as it was scheduled. */
export type Call = {
  readonly kind: 'call';
  readonly name: string;
  /** Bytes: packed by a coordinator on NATS; the worker unpacks them, and packs its result. */
  readonly args: readonly unknown[] | Uint8Array;
  /** The arguments that are PerWorkerValues: [index, id, index, id ...]. */
  readonly perWorker: readonly number[] | undefined;
  /** The parts of the arguments that are moved to the worker. */
  readonly transfer: readonly TransferListItem[];
  /** Takes the arguments that move from the caller. Undefined if they were taken, or none move. */
  readonly take?: (() => TakenArguments) | undefined;
};

export type TakenArguments = Pick<Call, 'args' | 'transfer'>;

/** How many closures settled with each state. */
export type OutcomeCounts = Record<Exclude<RemoteState, 'pending'>, number>;

export type ClosureOutcome = { state: Exclude<RemoteState, 'pending'>; value: unknown };

/** Ids are stored in Int32 claims (protocol.ts), where numbers up to 0 mean something else. */
const MAX_ID = 2 ** 31 - 2;
let last = 0;

function nextId(): number {
  last = (last % MAX_ID) + 1;
  return last;
}

export class Closure implements Queued {
  place: Place = 'new';
  /** Unique in this thread, until 2^31 - 2 other closures have been made. */
  readonly id: number = nextId();
  /** A call; or a resource, which one worker has to make before that worker takes calls. */
  work: Call | Resource;
  /** The arguments were moved to a worker: the closure cannot be sent to another worker. */
  isMoved = false;
  /** How often it was started and then lost its worker. */
  attempts = 0;
  /** The outcome by a deadline or signal, set while the attempt of the settled closure goes on. */
  decided: ClosureOutcome | undefined;
  readonly #settle: Settle | undefined;
  readonly #counts: OutcomeCounts | undefined;
  readonly #events: ClosureEvents | undefined;
  /** Removes the timer and the listener of its limits (time-limits.ts). */
  onSettled: (() => void) | undefined;

  /** @param settle - left out for a resource, which has no RemoteValue */
  constructor(
    work: Call | Resource,
    settle?: Settle,
    counts?: OutcomeCounts,
    events?: ClosureEvents,
  ) {
    this.work = work;
    this.#settle = settle;
    this.#counts = counts;
    this.#events = events;
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

  /** Only the first call has an effect. */
  settle(state: ClosureOutcome['state'], value: unknown): void {
    const isFirst = this.#settle?.(state, value);
    if (isFirst && this.#counts !== undefined) this.#counts[state] += 1;
    if (isFirst) this.note(CLOSURE.ended);
    this.onSettled?.();
    this.onSettled = undefined;
  }

  /** Notes in the timeline what has become of it. `event`: a value of CLOSURE. */
  note(event: number): void {
    this.#events?.note(event, this.id, (this.work as Call).name);
  }

  /** The queue calls it for closures that a failure, a stop or `close` has cancelled. */
  drop(error: unknown): void {
    this.settle('cancelled', error);
  }
}
