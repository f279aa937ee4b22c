/** A function with its arguments, on its way to a worker and back. */

import type { TransferListItem } from 'node:worker_threads';
import type { Resource } from '../worker/protocol.ts';
import type { Place, Queued } from './closure-queue.ts';
import type { RemoteState, Settle } from './remote-value.ts';

/** A function of the module, and what it is called with. */
export type Call = {
  readonly kind: 'call';
  readonly name: string;
  /** As bytes: the worker unpacks them, and packs the result; nobody between looks into them. */
  readonly args: readonly unknown[] | Uint8Array;
  /** Which of the arguments are a worker's own values: [index, id, index, id ...]. */
  readonly perWorker: readonly number[] | undefined;
  /** What of the arguments moves to the worker. */
  readonly transfer: readonly TransferListItem[];
  /** The arguments are still the caller's, until this takes them. */
  readonly take?: (() => Taken) | undefined;
};

export type Taken = Pick<Call, 'args' | 'transfer'>;

/** How many came to what. */
export type OutcomeCounts = Record<Exclude<RemoteState, 'pending'>, number>;

export type ClosureOutcome = { state: Exclude<RemoteState, 'pending'>; value: unknown };

/** Ids stand in words of shared memory; 0 and the negative ones mean something else there. */
const MAX_ID = 2 ** 31 - 2;
let last = 0;

function nextId(): number {
  last = (last % MAX_ID) + 1;
  return last;
}

export class Closure implements Queued {
  place: Place = 'new';
  /** Of this thread; used again only after two thousand million others. */
  readonly id: number = nextId();
  /** A resource is what one worker has to make before it does anything else. */
  work: Call | Resource;
  /** Its arguments went with it: it cannot be sent again. */
  isMoved = false;
  /** How often it was started. */
  attempts = 0;
  /** What it will come to, whatever its run does; the run goes on until it has ended. */
  decided: ClosureOutcome | undefined;
  readonly #settle: Settle | undefined;
  readonly #counts: OutcomeCounts | undefined;
  /** Takes timers and listeners off. */
  onSettled: (() => void) | undefined;

  /** Without more: nobody waits for what it comes to. */
  constructor(work: Call | Resource, settle?: Settle, counts?: OutcomeCounts) {
    this.work = work;
    this.#settle = settle;
    this.#counts = counts;
  }

  /** What moves is taken from the caller as late as this, when nothing can refuse the call. */
  enter(): void {
    if (this.work.kind !== 'call' || this.work.take === undefined) return;
    this.work = { ...this.work, ...this.work.take(), take: undefined };
  }

  /** The first call counts. */
  settle(state: ClosureOutcome['state'], value: unknown): void {
    const isFirst = this.#settle?.(state, value);
    if (isFirst && this.#counts !== undefined) this.#counts[state] += 1;
    this.onSettled?.();
    this.onSettled = undefined;
  }

  /** It is cancelled with what was in line with it. */
  drop(error: unknown): void {
    this.settle('cancelled', error);
  }
}
