/**
 * The calls of `schedule`, `join` and `done`: TensorFlow's error barrier, over a queue of calls that
 * fail one by one.
 *
 * 1. A failure is that of a call of the group. After the first failure none of them is queued until a
 *    caller has received that failure: those that have not begun are cancelled, those in flight are
 *    asked to end. (TensorFlow's workers go on until a caller asks.)
 * 2. Exactly one caller receives a failure, when no call of the group is in flight any more: the
 *    caller that has waited longest (for room, in `join` or `done`), or else the next one.
 * 3. Callers are served in order, whatever they wait for. So a `join` is a barrier, as in TensorFlow: a
 *    call that is scheduled later waits until the `join` has ended. Only the first one of the line
 *    waits for room in the queue; what else waits there, calls of `run`, gets room in its turn.
 * 4. A `join` waits for everything that was put in the queue before it, and for no later calls of `run`,
 *    which may keep coming.
 */

import { describe } from '../../base/thrown-value.ts';
import { CancelledError } from '../../errors/errors.ts';
import {
  type CallQueue,
  Line,
  type Outcome,
  type Queued,
  type RoomWaiter,
} from '../../pool/queue/call-queue.ts';

/** The part of a call that the group uses. */
export interface Grouped extends Queued {
  readonly work: { readonly name: string };
}

type Waiter<C> = {
  isGone: boolean;
  readonly reject: (error: unknown) => void;
} & (
  | { readonly kind: 'put'; readonly call: C; readonly resolve: () => void }
  | { readonly kind: 'join'; readonly isOver: () => boolean; readonly resolve: () => void }
  | { readonly kind: 'done'; readonly resolve: (done: boolean) => void }
);

export class CallGroup<C extends Grouped> {
  readonly #queue: CallQueue<C>;
  readonly #cancel: (call: C, reason: Error) => void;
  /** Its calls that are in the queue, or wait for room there. */
  readonly #live = new Set<C>();
  readonly #line = new Line<Waiter<C>>(({ isGone }) => !isGone);
  /** The waiters of calls. */
  readonly #puts = new Map<C, Waiter<C>>();
  readonly #makeWaiter = (): RoomWaiter => ({
    entered: () => {
      this.#shift();
      this.#serve();
    },
    refused: () => {}, // `left` has rejected its waiter
  });
  #isServing = false;
  /** The first failure, until a caller has received it. */
  #failure: { readonly error: unknown; errorOf(dropped: C): unknown } | undefined;

  /** @param cancel - asks the attempt of a call in flight to end; its worker is not replaced */
  constructor(queue: CallQueue<C>, cancel: (call: C, reason: Error) => void) {
    this.#queue = queue;
    this.#cancel = cancel;
  }

  /** The calls that wait until they are put in the queue. */
  get waiting(): C[] {
    return [...this.#puts.keys()];
  }

  /**
   * @returns undefined if the call is queued; else a promise that resolves when it is, and rejects
   *   with a failure, or when the call is refused
   */
  put(call: C): Promise<void> | undefined {
    const isDraining = this.#queue.end !== undefined && !this.#queue.isClosed;
    if (isDraining || (this.#line.size === 0 && this.#failure === undefined)) {
      try {
        if (this.#enter(call, false)) return undefined;
      } catch (error) {
        return Promise.reject(error);
      }
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter<C> = { kind: 'put', call, resolve, reject, isGone: false };
      this.#puts.set(call, waiter);
      this.#line.push(waiter);
      this.#serve();
    });
  }

  /**
   * Resolves when everything is out that was put in before it. Rejects with a failure.
   *
   * @param giveLeave - receives a function that takes the call out of the line and rejects it with
   *   an error; it does nothing once the call has settled
   */
  join(giveLeave?: (leave: (error: unknown) => void) => void): Promise<void> {
    const isOver = this.#queue.mark();
    return new Promise((resolve, reject) => {
      const waiter: Waiter<C> = { kind: 'join', isOver, resolve, reject, isGone: false };
      this.#line.push(waiter);
      giveLeave?.((error) => {
        if (waiter.isGone) return;
        this.#leave(waiter, error);
        this.#serve();
      });
      this.#serve();
    });
  }

  /** Whether nothing is in the queue. Only after a failure or the end it waits and rejects. */
  done(): Promise<boolean> {
    if (this.#failure === undefined && !this.#queue.isClosed) {
      return Promise.resolve(this.#queue.size === 0);
    }
    return new Promise((resolve, reject) => {
      this.#line.push({ kind: 'done', resolve, reject, isGone: false });
      this.#serve();
    });
  }

  /** How a call of the group settles that a worker has given back; undefined: it is queued again. */
  whyNot(call: C): Outcome | undefined {
    if (this.#failure === undefined) return undefined;
    return { state: 'cancelled', value: this.#failure.errorOf(call) };
  }

  /** The function of a call in flight has failed: it has settled so, and is about to be out. */
  failed(failed: C, error: unknown): void {
    if (this.#failure !== undefined || this.#queue.isClosed) return;
    const why = `'${failed.work.name}' failed: ${describe(error)}`;
    this.#failure = { error, errorOf: errorsOfDropped(why, error) };
    const first = this.#line.first();
    if (first?.kind === 'put' && this.#queue.withdraw(first.call)) this.#live.delete(first.call);
    const reason = new CancelledError(`Cancelled because the function ${why}`, { cause: error });
    const others = [...this.#live];
    for (const each of others) {
      const outcome = each.life.at === 'in-flight' ? undefined : this.whyNot(each);
      if (outcome !== undefined) this.#queue.out(each, outcome);
    }
    for (const each of others) {
      const { life } = each;
      if (life.at === 'in-flight' && life.outcome === undefined) this.#cancel(each, reason);
    }
  }

  /** Any call is out, of the group or not. */
  left(call: C): void {
    this.#live.delete(call);
    const waiter = this.#puts.get(call);
    if (waiter !== undefined && 'refusal' in call.life) {
      const { refusal } = call.life;
      const { end } = this.#queue;
      this.#leave(waiter, refusal === end?.dropped?.value ? end?.refusal : refusal);
    }
    this.#serve();
  }

  /** A waiter leaves the line other than by being its first. */
  #leave(waiter: Waiter<C>, error: unknown): void {
    waiter.isGone = true;
    this.#line.hasLeft();
    if (waiter.kind === 'put') this.#puts.delete(waiter.call);
    waiter.reject(error);
  }

  /** @returns whether the call is in the queue. @throws as `CallQueue.put` */
  #enter(call: C, isEarlier: boolean): boolean {
    this.#live.add(call);
    try {
      return this.#queue.put(call, this.#makeWaiter, isEarlier);
    } catch (error) {
      this.#live.delete(call);
      throw error;
    }
  }

  /** The first of the line leaves it. */
  #shift(): void {
    const first = this.#line.shift();
    if (first === undefined) return;
    first.isGone = true;
    if (first.kind === 'put') {
      this.#puts.delete(first.call);
      first.resolve();
    } else if (first.kind === 'join') first.resolve();
    else first.resolve(this.#queue.size === 0);
  }

  /** Serves the line, as far as the state allows. What it does may call it again. */
  #serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#serveAll();
    this.#isServing = false;
  }

  #serveAll(): void {
    for (;;) {
      const first = this.#line.first();
      if (first === undefined) return;
      if (this.#failure !== undefined) {
        if (this.#live.size > 0) return;
        const { error } = this.#failure;
        this.#failure = undefined;
        this.#refuse(first, error);
      } else if (first.kind === 'put') {
        if (first.call.life.at === 'waiting') return;
        try {
          if (!this.#enter(first.call, true)) return; // after `close` none joins the line
          this.#shift();
        } catch (error) {
          if (!first.isGone) this.#refuse(first, error);
        }
      } else if (this.#queue.isClosed) {
        if (this.#queue.size > 0) return;
        this.#refuse(first, this.#queue.end?.refusal);
      } else {
        if (first.kind === 'join' && (this.#live.size > 0 || !first.isOver())) return;
        this.#shift();
      }
    }
  }

  /** The first of the line receives an error. */
  #refuse(first: Waiter<C>, error: unknown): void {
    this.#leave(first, error);
    if (first.kind === 'put') this.#queue.out(first.call, { state: 'failed', value: error });
  }
}

/** The errors of what `why` has cancelled. Calls of the same name share one. */
function errorsOfDropped(why: string, error: unknown): (dropped: Grouped) => unknown {
  if (error instanceof CancelledError) return () => error;
  const errors = new Map<string, CancelledError>();
  return ({ work: { name } }) => {
    let shared = errors.get(name);
    if (shared === undefined) {
      const text = `'${name}' was cancelled because ${why}. Please reschedule it`;
      errors.set(name, (shared = new CancelledError(text, { cause: error })));
    }
    return shared;
  };
}
