/**
 * The queue of closures for workers: TensorFlow's closure queue, as a pure state machine. It
 * knows neither workers nor results, and waits for no timer or event.
 *
 * 1. Every closure that was put in has one place (`Queued.place`): waiting for room, queued,
 *    in flight, or out. A closure that goes from queued to out without `take` was dropped
 *    with an error, or removed by its owner.
 * 2. After the first failure nothing is queued and `take` returns nothing, until a caller has
 *    received that failure. (TensorFlow's workers go on until a caller asks.)
 * 3. Exactly one caller receives a failure, when nothing is in flight any more: the caller that
 *    has waited longest (for room, in `join` or `done`), or else the next one.
 * 4. Waiting calls are served in order, whatever they wait for. So a `join` is a barrier, as
 *    in TensorFlow: a closure that is put in later waits until the `join` has ended.
 * 5. `putBack` needs no room and goes to the head, so that workers which fail together cannot
 *    wait for each other. (In TensorFlow they can.)
 * 6. Closures that are tagged for a worker have a queue of their own, which is served first.
 *    They are neither counted nor dropped with the others: the worker needs them before it
 *    can take anything else.
 * 7. `#inFlight` holds exactly the closures whose place is 'in-flight'. No other object counts
 *    them: the rules (closure-rules.ts) and `stats()` read this set.
 */

export type Place = 'new' | 'waiting' | 'queued' | 'in-flight' | 'out';

/** The part of a closure that the queue uses. */
export interface Queued {
  /** Where the closure is (invariant 1 above). Only the queue writes it. */
  place: Place;
  /** Called just before the closure is queued. If it throws, the closure is not put in. */
  enter(): void;
  /** The queue has dropped the closure with this error; its place is 'out' already. */
  drop(error: unknown): void;
}

type Waiter<C> =
  | { kind: 'put'; closure: C; resolve: () => void; reject: (error: unknown) => void }
  | { kind: 'join'; resolve: () => void; reject: (error: unknown) => void }
  | { kind: 'done'; resolve: (done: boolean) => void; reject: (error: unknown) => void };

/** First in, first out, with `unshift` to return an item to the head. */
class Deque<C> {
  #head: C[] = []; // reversed: the next item is at the end
  #tail: (C | undefined)[] = [];
  #next = 0; // in #tail

  push(item: C): void {
    this.#tail.push(item);
  }

  unshift(item: C): void {
    this.#head.push(item);
  }

  shift(): C | undefined {
    if (this.#head.length > 0) return this.#head.pop();
    if (this.#next === this.#tail.length) return undefined;
    const item = this.#tail[this.#next];
    this.#tail[this.#next] = undefined; // so that the array does not keep the item alive
    this.#next += 1;
    if (this.#next > 1_024 && this.#next * 2 > this.#tail.length) {
      this.#tail = this.#tail.slice(this.#next);
      this.#next = 0;
    }
    return item;
  }

  takeAll(): C[] {
    const all = [...this.#head.toReversed(), ...(this.#tail.slice(this.#next) as C[])];
    this.#head = [];
    this.#tail = [];
    this.#next = 0;
    return all;
  }

  keep(isWanted: (item: C) => boolean): void {
    this.#tail = this.takeAll().filter(isWanted);
  }
}

export interface ClosureQueueListener<C> {
  /** `take` or `takeTagged` may return a closure now. */
  onWork(): void;
  /**
   * Called once for each failure that counts (see `fail`). Returns a function that makes the
   * error with which the queue drops another closure because `failed` has failed.
   */
  onFailure(failed: C, error: unknown): (dropped: C) => unknown;
}

export class ClosureQueue<C extends Queued> {
  readonly #maxQueued: number;
  readonly #listener: ClosureQueueListener<C>;
  /** The queued closures that are not tagged, and some removed closures, which `take` skips. */
  readonly #items = new Deque<C>();
  readonly #tagged = new Map<number, Deque<C>>();
  #taggedCount = 0;
  #queued = 0;
  /** The number of closures in #items that were removed. */
  #removed = 0;
  /** Exactly the closures whose place is 'in-flight'. */
  readonly #inFlight = new Set<C>();
  #waiters: Waiter<C>[] = [];
  /** The first failure, until a caller has received it. */
  #error: { value: unknown; errorOfDropped: (dropped: C) => unknown } | undefined;
  #closed: { value: unknown; dropped: unknown } | undefined;

  /** @param maxQueued - `put` waits while this number of closures is queued */
  constructor(maxQueued: number, listener: ClosureQueueListener<C>) {
    this.#maxQueued = maxQueued;
    this.#listener = listener;
  }

  /** The number of queued closures, without the tagged ones. */
  get queued(): number {
    return this.#queued;
  }

  get inFlight(): ReadonlySet<C> {
    return this.#inFlight;
  }

  /** Whether a failure has not been reported to a caller yet. */
  get hasFailed(): boolean {
    return this.#error !== undefined;
  }

  /**
   * @returns undefined if the closure is queued; else a promise that resolves when it is
   *   queued, and rejects with a failure, the error of `enter`, or the error of `close`
   */
  put(closure: C): Promise<void> | undefined {
    const isFree = this.#error === undefined && this.#closed === undefined;
    if (isFree && this.#waiters.length === 0 && this.#queued < this.#maxQueued) {
      try {
        this.#enter(closure);
        return undefined;
      } catch (error) {
        return Promise.reject(error);
      }
    }
    closure.place = 'waiting';
    return new Promise((resolve, reject) => {
      this.#waiters.push({ kind: 'put', closure, resolve, reject });
      this.#advance();
    });
  }

  /** Queues a closure for the worker `tag` only, ahead of all untagged ones. */
  putTagged(closure: C, tag: number): void {
    let items = this.#tagged.get(tag);
    if (items === undefined) this.#tagged.set(tag, (items = new Deque()));
    closure.place = 'queued';
    items.push(closure);
    this.#taggedCount += 1;
    this.#listener.onWork();
  }

  get hasTagged(): boolean {
    return this.#taggedCount > 0;
  }

  /** The next closure that was tagged for the worker `tag`; its place is 'out' from here on. */
  takeTagged(tag: number): C | undefined {
    const closure = this.#tagged.get(tag)?.shift();
    if (closure === undefined) return undefined;
    closure.place = 'out';
    this.#taggedCount -= 1;
    return closure;
  }

  /** The next closure; it is in flight from here on. */
  take(): C | undefined {
    if (this.#error !== undefined || this.#closed !== undefined) return undefined;
    for (;;) {
      const closure = this.#items.shift();
      if (closure === undefined) return undefined;
      if (closure.place !== 'queued') {
        this.#removed -= 1;
        continue;
      }
      closure.place = 'in-flight';
      this.#queued -= 1;
      this.#inFlight.add(closure);
      if (this.#waiters.length > 0) this.#advance();
      return closure;
    }
  }

  /**
   * Queues a closure that was in flight ahead of all others; drops it after a failure or `close`.
   *
   * @returns whether it was queued
   */
  putBack(closure: C): boolean {
    this.#inFlight.delete(closure);
    const isQueued = this.#closed === undefined && this.#error === undefined;
    if (isQueued) {
      closure.place = 'queued';
      this.#queued += 1;
      this.#items.unshift(closure);
      this.#listener.onWork();
    } else {
      closure.place = 'out';
      closure.drop(this.#closed?.dropped ?? this.#error?.errorOfDropped(closure));
    }
    this.#advance();
    return isQueued;
  }

  /**
   * Puts queued closures in flight again, because a worker that was given up still has them.
   *
   * @returns those that were queued; the others stay where they are
   */
  reclaim(closures: readonly C[]): C[] {
    const queued = new Set(closures.filter(({ place }) => place === 'queued'));
    if (queued.size === 0) return [];
    // Not by #remove: a closure that is put back later must not be in #items twice.
    this.#items.keep((item) => !queued.has(item));
    for (const closure of queued) {
      closure.place = 'in-flight';
      this.#queued -= 1;
      this.#inFlight.add(closure);
    }
    this.#advance();
    return [...queued];
  }

  /** A closure that was in flight has ended without a failure, or was cancelled. */
  end(closure: C): void {
    closure.place = 'out';
    this.#inFlight.delete(closure);
    if (this.#waiters.length > 0) this.#advance();
  }

  /**
   * A closure that was in flight has ended with a failure.
   *
   * @returns whether this failure counts: it is the first one
   */
  fail(closure: C, error: unknown): boolean {
    closure.place = 'out';
    this.#inFlight.delete(closure);
    const isFirst = this.#note(closure, error);
    this.#advance();
    return isFirst;
  }

  /** As `fail`, for a closure that stays in flight until its attempt has ended. */
  report(closure: C, error: unknown): boolean {
    return this.#note(closure, error);
  }

  /** As `fail`, for a closure that is queued. */
  failQueued(closure: C, error: unknown): boolean {
    this.#remove(closure);
    const isFirst = this.#note(closure, error);
    this.#advance();
    return isFirst;
  }

  /**
   * Removes a closure that is queued, or that waits for room; the `put` of the latter rejects
   * with `error`.
   *
   * @returns false if the closure is neither
   */
  remove(closure: C, error?: unknown): boolean {
    if (closure.place === 'queued') {
      this.#remove(closure);
      this.#advance();
      return true;
    }
    if (closure.place !== 'waiting') return false;
    closure.place = 'out';
    const at = this.#waiters.findIndex((each) => each.kind === 'put' && each.closure === closure);
    const [waiter] = this.#waiters.splice(at, 1);
    waiter?.reject(error);
    this.#advance();
    return true;
  }

  /** Resolves when nothing is queued or in flight. Rejects with a failure. */
  join(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ kind: 'join', resolve, reject });
      this.#advance();
    });
  }

  /**
   * Whether nothing is queued or in flight. Only after a failure or `close` it waits and rejects.
   */
  done(): Promise<boolean> {
    if (this.#error === undefined && this.#closed === undefined) {
      return Promise.resolve(this.#isIdle());
    }
    return new Promise((resolve, reject) => {
      this.#waiters.push({ kind: 'done', resolve, reject });
      this.#advance();
    });
  }

  /**
   * Drops the queued closures with `dropped`. Later `put`, `join` and `done` reject with `error`.
   */
  close(error: unknown, dropped: unknown): void {
    if (this.#closed !== undefined) return;
    this.#closed = { value: error, dropped };
    this.#dropAll(() => dropped);
    this.#advance();
  }

  #isIdle(): boolean {
    return this.#queued === 0 && this.#inFlight.size === 0;
  }

  #enter(closure: C): void {
    closure.place = 'out'; // where it stays if `enter` throws
    closure.enter();
    closure.place = 'queued';
    this.#queued += 1;
    this.#items.push(closure);
    this.#listener.onWork();
  }

  /** Leaves the closure in #items, where `take` skips it, until most closures there are removed. */
  #remove(closure: C): void {
    closure.place = 'out';
    this.#queued -= 1;
    this.#removed += 1;
    if (this.#removed <= this.#queued) return;
    this.#items.keep(({ place }) => place === 'queued');
    this.#removed = 0;
  }

  #note(closure: C, error: unknown): boolean {
    if (this.#error !== undefined || this.#closed !== undefined) return false;
    const errorOfDropped = this.#listener.onFailure(closure, error);
    this.#error = { value: error, errorOfDropped };
    this.#dropAll(errorOfDropped);
    return true;
  }

  #dropAll(errorOf: (dropped: C) => unknown): void {
    const dropped = this.#items.takeAll().filter(({ place }) => place === 'queued');
    this.#queued = 0;
    this.#removed = 0;
    for (const closure of dropped) closure.place = 'out';
    for (const closure of dropped) closure.drop(errorOf(closure));
  }

  /** Serves the waiting calls in order, as far as the state allows. */
  #advance(): void {
    for (;;) {
      const first = this.#waiters[0];
      if (first === undefined) return;
      const over = this.#error ?? this.#closed;
      if (over !== undefined) {
        // A closed queue never has room: a `put` need not wait for the closures in flight.
        const isHopeless = over === this.#closed && first.kind === 'put';
        if (this.#inFlight.size > 0 && !isHopeless) return;
        this.#waiters.shift();
        if (over === this.#error) this.#error = undefined;
        if (first.kind === 'put') first.closure.place = 'out';
        first.reject(over.value);
        continue;
      }
      if (first.kind === 'put') {
        if (this.#queued >= this.#maxQueued) return;
        this.#waiters.shift();
        try {
          this.#enter(first.closure);
          first.resolve();
        } catch (error) {
          first.reject(error);
        }
      } else if (first.kind === 'done') {
        this.#waiters.shift();
        first.resolve(this.#isIdle());
      } else {
        if (!this.#isIdle()) return;
        this.#waiters.shift();
        first.resolve();
      }
    }
  }
}
