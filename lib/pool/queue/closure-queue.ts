/**
 * The queue of closures for workers: TensorFlow's closure queue, as a pure state machine, and
 * beside its rules the closures that are their caller's own (`cluster.run`). It knows neither
 * workers nor results, and waits for no timer or event.
 *
 * 1. Every closure that was put in has one place (`Queued.place`): waiting for room, held, queued,
 *    in flight, or out. A closure that goes from queued to out without `take` was dropped
 *    with an error, or removed by its owner.
 * 2. A failure is that of a scheduled closure. After the first failure no scheduled closure is
 *    queued until a caller has received that failure. (TensorFlow's workers go on until a caller
 *    asks.) An own closure (`Queued.isOwn`) fails nothing, is not dropped by a failure, and its
 *    `put` receives none.
 * 3. Exactly one caller receives a failure, when no scheduled closure is in flight any more: the
 *    caller that has waited longest (for room for a scheduled closure, in `join` or `done`), or
 *    else the next one.
 * 4. Calls about scheduled closures are served in order, whatever they wait for. So a `join` is a
 *    barrier, as in TensorFlow: a scheduled closure that is put in later waits until the `join`
 *    has ended. An own closure waits for room only, behind all that waited for room before it.
 * 5. `putBack` needs no room, so that workers which fail together cannot wait for each other. (In
 *    TensorFlow they can.) It goes to the head; a suspect, which may have killed its worker, to
 *    the tail.
 * 6. Closures that are tagged for a worker have a queue of their own, which is served first.
 *    They are neither counted nor dropped with the others: the worker needs them before it
 *    can take anything else.
 * 7. `#inFlight` holds exactly the closures whose place is 'in-flight'. No other object counts
 *    them: the rules (closure-rules.ts) and `stats()` read this set.
 * 8. A `join` waits for the closures that were put in before it, also for those that wait for
 *    room, and for no later ones: own closures that keep coming do not hold it up. Each closure
 *    counts in one `Era`, the time between two joins, from `put` until its place is 'out'.
 * 9. A closure that waits for its arguments (`Queued.isHeld`) is held, outside the line, from when
 *    it is put in until `release`. It takes no room, and `release` needs none: a `join` before
 *    which it was put in waits for it, and must not be what it waits for. A failure drops it as a
 *    queued one. One that was in flight and is to be run again later (`delay`) is outside the line
 *    in the same way.
 * 10. The line has an order by priority, and in each priority by time. A worker takes the first
 *    closure that it may run (`Queued.placement`). The head is that of the closure's priority; the
 *    tail, where a suspect goes, is behind everything that is queued, whatever its priority.
 * 11. `#bytes` is the sum of `Queued.bytes` of exactly the closures in `#items`. There is room for a
 *    closure if with it neither limit is exceeded; or if nothing is queued, however large it is, so
 *    that no closure waits for ever.
 */

import { Line } from './line.ts';
import { ClosureLines, type InLine, type Runner } from './lines/closure-lines.ts';

/** 'held': it waits for its arguments; 'delayed': it has failed, and waits to be run again. */
export type Place = 'new' | 'waiting' | 'held' | 'delayed' | 'queued' | 'in-flight' | 'out';

/** The time between two joins. */
export type Era = {
  /** The number of closures that were put in during it and are not out. */
  count: number;
  /** All closures of this era, and of all before it, are out. */
  isOver: boolean;
};

/** The part of a closure that the queue uses. */
export interface Queued extends InLine {
  /** Where the closure is (invariant 1 above). Only the queue writes it. */
  place: Place;
  /** When it was put in. Only the queue writes it. */
  era: Era | undefined;
  /** Its error is its caller's alone (invariant 2). */
  readonly isOwn: boolean;
  /** It waits for its arguments (invariant 9). */
  readonly isHeld?: boolean;
  /** It may have killed its worker: it has to run alone (invariant 5). */
  readonly isSuspect: boolean;
  /** How many bytes its arguments take. Does not change while it is queued (invariant 9). */
  readonly bytes: number;
  /** Called just before the closure is queued. If it throws, the closure is not put in. */
  enter(): void;
  /** The queue has dropped the closure, which settles so; its place is 'out' already. */
  drop(outcome: Dropped): void;
}

/** 'failed': the cluster has failed. 'cancelled': a stop, `close` or another closure's failure. */
export type Dropped = { state: 'failed' | 'cancelled'; value: unknown };

type Waiter<C> = {
  /** The number of the call: what waits for room gets it in this order. */
  readonly number: number;
  readonly reject: (error: unknown) => void;
  isGone: boolean;
} & (
  | { readonly kind: 'put'; readonly closure: C; readonly resolve: () => void }
  | { readonly kind: 'join'; readonly until: Era; readonly resolve: () => void }
  | { readonly kind: 'done'; readonly resolve: (done: boolean) => void }
);

export interface ClosureQueueListener<C> {
  /** `take` or `takeTagged` may return a closure now. */
  onWork(): void;
  /**
   * Called once for each failure that counts (see `fail`). Returns a function that makes the
   * error with which the queue drops another closure because `failed` has failed.
   */
  onFailure(failed: C, error: unknown): (dropped: C) => unknown;
}

const newEra = (): Era => ({ count: 0, isOver: false });
const isWaiting = ({ isGone }: { isGone: boolean }): boolean => !isGone;

export class ClosureQueue<C extends Queued> {
  readonly #maxQueued: number;
  readonly #maxBytes: number;
  readonly #listener: ClosureQueueListener<C>;
  /** The queued closures that are not tagged. */
  readonly #items = new ClosureLines<C>(({ place }) => place === 'queued');
  /** The bytes of their arguments (invariant 11). */
  #bytes = 0;
  readonly #tagged = new Map<number, Line<C>>();
  #taggedCount = 0;
  /** Exactly the closures whose place is 'held' or 'delayed'. */
  readonly #held = new Set<C>();
  /** The number of those that are delayed. */
  #delayed = 0;
  /** Exactly the closures whose place is 'in-flight'. */
  readonly #inFlight = new Set<C>();
  /** The number of those that were scheduled. */
  #scheduledInFlight = 0;
  /** Calls about scheduled closures, and puts of own ones. */
  readonly #waiters = new Line<Waiter<C>>(isWaiting);
  readonly #ownWaiters = new Line<Waiter<C>>(isWaiting);
  /** The waiter of each closure whose place is 'waiting'. */
  readonly #waiterOf = new Map<C, Waiter<C>>();
  #lastNumber = 0;
  /** The eras that are not over, the oldest first, without the present one. */
  readonly #eras = new Line<Era>(() => true);
  #era: Era = newEra();
  /** The era before the present one. */
  #lastEra: Era = { count: 0, isOver: true };
  /** The first failure, until a caller has received it. */
  #error: { value: unknown; errorOfDropped: (dropped: C) => unknown } | undefined;
  /** Why nothing can be put in any more, though what is here goes on. */
  #refusal: { value: unknown } | undefined;
  /** `number`: of the last call before it was closed. */
  #closed: { value: unknown; dropped: Dropped; number: number } | undefined;

  /**
   * @param maxQueued - `put` waits while this number of closures is queued
   * @param maxBytes - `put` waits while the arguments of those queued, with its own, take more bytes
   */
  constructor(maxQueued: number, maxBytes: number, listener: ClosureQueueListener<C>) {
    this.#maxQueued = maxQueued;
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  /** The number of queued closures, without the tagged ones. */
  get queued(): number {
    return this.#items.size;
  }

  /** The bytes that the arguments of those take. */
  get queuedBytes(): number {
    return this.#bytes;
  }

  get inFlight(): ReadonlySet<C> {
    return this.#inFlight;
  }

  /** The number of closures that wait for their arguments. */
  get held(): number {
    return this.#held.size - this.#delayed;
  }

  /** The number of closures that wait to be run again. */
  get delayed(): number {
    return this.#delayed;
  }

  /** Whether nothing waits for room or arguments, is queued or in flight. */
  get isEmpty(): boolean {
    return this.#isIdle() && this.#waiterOf.size === 0;
  }

  /** Whether a failure has not been reported to a caller yet. */
  get hasFailed(): boolean {
    return this.#error !== undefined;
  }

  /**
   * @returns undefined if the closure is queued; else a promise that resolves when it is
   *   queued, and rejects with a failure, the error of `enter`, of `refuse` or of `close`
   */
  put(closure: C): Promise<void> | undefined {
    if (this.#refusal !== undefined && this.#closed === undefined) {
      closure.place = 'out';
      return Promise.reject(this.#refusal.value);
    }
    closure.era = this.#era;
    this.#era.count += 1;
    const hasRoom = this.#closed === undefined && this.#hasRoom(closure);
    // What has waited for room longer, of either line, gets it first: else small closures would
    // pass a large one without end.
    const isNext =
      this.#ownWaiters.size === 0 &&
      (closure.isOwn
        ? !this.#waitsForRoom(this.#waiters.first())
        : this.#error === undefined && this.#waiters.size === 0);
    if (hasRoom && isNext) {
      try {
        this.#enter(closure);
        return undefined;
      } catch (error) {
        return Promise.reject(error);
      }
    }
    closure.place = 'waiting';
    return new Promise((resolve, reject) => {
      const waiter: Waiter<C> = { kind: 'put', closure, resolve, reject, ...this.#number() };
      this.#waiterOf.set(closure, waiter);
      (closure.isOwn ? this.#ownWaiters : this.#waiters).push(waiter);
      this.#advance();
    });
  }

  /** What waits anywhere and only some workers may run. */
  get placed(): C[] {
    const others = [...this.#held, ...this.#waiterOf.keys()];
    return [...this.#items.placed, ...others.filter(({ placement }) => placement !== undefined)];
  }

  /** The workers that queued closures are placed on, by index. */
  get placedOn(): number[] {
    return this.#items.placedOn;
  }

  /** Queues a closure that was held or delayed. @returns false if it is not any more */
  release(closure: C): boolean {
    if (!this.#leaveHeld(closure)) return false;
    closure.place = 'queued';
    this.#bytes += closure.bytes;
    this.#items.push(closure);
    this.#listener.onWork();
    return true;
  }

  /** Queues a closure for the worker `tag` only, ahead of all untagged ones. */
  putTagged(closure: C, tag: number): void {
    let items = this.#tagged.get(tag);
    if (items === undefined) this.#tagged.set(tag, (items = new Line(() => true)));
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

  /** The first queued closure of each priority and placement: the oldest of all is among them. */
  get firsts(): C[] {
    return this.#items.firsts;
  }

  /** Whether closures are queued that only some workers may run. */
  get hasPlaced(): boolean {
    return this.#items.hasPlaced;
  }

  /** Whether the next closure is a suspect: only a worker that has nothing else may take it. */
  isSuspectNext(runner?: Runner): boolean {
    return this.#items.first(runner)?.isSuspect === true;
  }

  /** The next closure that the runner may run; it is in flight from here on. */
  take(runner?: Runner): C | undefined {
    const closure = this.#items.shift(runner);
    if (closure === undefined) return undefined;
    this.#bytes -= closure.bytes;
    closure.place = 'in-flight';
    this.#inFlight.add(closure);
    if (!closure.isOwn) this.#scheduledInFlight += 1;
    this.#advance();
    return closure;
  }

  /**
   * Queues a closure that was in flight: ahead of all others, or, if it is a suspect, behind them.
   * Drops it after `close`, and a scheduled one after a failure.
   *
   * @returns whether it was queued
   */
  putBack(closure: C): boolean {
    this.#land(closure);
    const over = this.#closed ?? (closure.isOwn ? undefined : this.#error);
    const isQueued = over === undefined;
    if (isQueued) {
      closure.place = 'queued';
      this.#bytes += closure.bytes;
      if (closure.isSuspect) this.#items.pushLast(closure);
      else this.#items.unshift(closure);
      this.#listener.onWork();
    } else {
      this.#out(closure);
      closure.drop(this.#closed?.dropped ?? this.#cancelled(closure));
    }
    this.#advance();
    return isQueued;
  }

  /**
   * Keeps a closure that was in flight outside the line, until `release`. Drops it as `putBack` does.
   *
   * @returns whether it is delayed
   */
  delay(closure: C): boolean {
    this.#land(closure);
    const over = this.#closed ?? (closure.isOwn ? undefined : this.#error);
    if (over === undefined) {
      closure.place = 'delayed';
      this.#held.add(closure);
      this.#delayed += 1;
    } else {
      this.#out(closure);
      closure.drop(this.#closed?.dropped ?? this.#cancelled(closure));
    }
    this.#advance();
    return over === undefined;
  }

  /** @returns false if the closure is neither held nor delayed */
  #leaveHeld(closure: C): boolean {
    if (!this.#held.delete(closure)) return false;
    if (closure.place === 'delayed') this.#delayed -= 1;
    return true;
  }

  /**
   * Puts queued closures in flight again, because a worker that was given up still has them.
   *
   * @returns those that were queued; the others stay where they are
   */
  reclaim(closures: readonly C[]): C[] {
    const asked = new Set(closures);
    // Taken out of the line, not left there as gone: a closure that is put back later must not be
    // in the line twice.
    const back = this.#items.takeAll((item) => asked.has(item));
    for (const closure of back) {
      this.#bytes -= closure.bytes;
      closure.place = 'in-flight';
      this.#inFlight.add(closure);
      if (!closure.isOwn) this.#scheduledInFlight += 1;
    }
    if (back.length > 0) this.#advance();
    return back;
  }

  /** A closure that was in flight has ended without a failure, or was cancelled. */
  end(closure: C): void {
    this.#land(closure);
    this.#out(closure);
    this.#advance();
  }

  /**
   * A scheduled closure that was in flight has ended with a failure.
   *
   * @returns whether this failure counts: it is the first one
   */
  fail(closure: C, error: unknown): boolean {
    this.#land(closure);
    this.#out(closure);
    const isFirst = this.#note(closure, error);
    this.#advance();
    return isFirst;
  }

  /**
   * Removes a closure that is queued or held, or that waits for room. The `put` of a closure that
   * waits for room rejects with `error`.
   *
   * @returns false if the closure is neither queued nor held, and does not wait for room
   */
  remove(closure: C, error?: unknown): boolean {
    if (closure.place === 'queued') {
      this.#out(closure);
      this.#bytes -= closure.bytes;
      this.#items.hasLeft(closure);
    } else if (this.#leaveHeld(closure)) this.#out(closure);
    else if (closure.place === 'waiting') {
      const waiter = this.#waiterOf.get(closure) as Waiter<C>;
      this.#gone(waiter);
      this.#out(closure);
      waiter.reject(error);
    } else return false;
    this.#advance();
    return true;
  }

  /**
   * Resolves when all closures that were put in before it are out. Rejects with a failure.
   *
   * @param giveLeave - receives a function that takes the call out of the line and rejects it with
   *   an error; it does nothing once the call has settled
   */
  join(giveLeave?: (leave: (error: unknown) => void) => void): Promise<void> {
    const until = this.#endEra();
    return new Promise((resolve, reject) => {
      const waiter: Waiter<C> = { kind: 'join', until, resolve, reject, ...this.#number() };
      this.#waiters.push(waiter);
      giveLeave?.((error) => {
        if (waiter.isGone) return;
        this.#gone(waiter);
        reject(error);
        this.#advance();
      });
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
      this.#waiters.push({ kind: 'done', resolve, reject, ...this.#number() });
      this.#advance();
    });
  }

  /** Later `put`s reject with `error`; everything that was put in goes on. */
  refuse(error: unknown): void {
    this.#refusal ??= { value: error };
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /**
   * Drops the queued closures, which settle as `dropped`; a `put` of an own closure that waits for
   * room rejects with the value of `dropped`. Other `put`s, `join` and `done` reject with `error`.
   */
  close(error: unknown, dropped: Dropped): void {
    if (this.#closed !== undefined) return;
    this.#closed = { value: error, dropped, number: this.#lastNumber };
    this.#dropAll(
      () => true,
      () => dropped,
    );
    this.#advance();
  }

  #isIdle(): boolean {
    return this.#items.size === 0 && this.#inFlight.size === 0 && this.#held.size === 0;
  }

  #number(): { number: number; isGone: boolean } {
    this.#lastNumber += 1;
    return { number: this.#lastNumber, isGone: false };
  }

  #enter(closure: C): void {
    closure.place = 'out'; // where it stays if `enter` throws
    try {
      closure.enter();
    } catch (error) {
      this.#out(closure);
      throw error;
    }
    if (closure.isHeld === true) {
      closure.place = 'held';
      this.#held.add(closure);
      return;
    }
    closure.place = 'queued';
    this.#bytes += closure.bytes;
    this.#items.push(closure);
    this.#listener.onWork();
  }

  #hasRoom({ bytes }: C): boolean {
    if (this.#items.size === 0) return true;
    return this.#items.size < this.#maxQueued && this.#bytes + bytes <= this.#maxBytes;
  }

  /** The closure is not in flight any more. */
  #land(closure: C): void {
    if (!this.#inFlight.delete(closure)) return;
    if (!closure.isOwn) this.#scheduledInFlight -= 1;
  }

  #out(closure: C): void {
    closure.place = 'out';
    if (closure.era !== undefined) closure.era.count -= 1;
    closure.era = undefined;
  }

  /** A waiter has left the line other than by being its first. */
  #gone(waiter: Waiter<C>): void {
    waiter.isGone = true;
    if (waiter.kind !== 'put') {
      this.#waiters.hasLeft();
      return;
    }
    this.#waiterOf.delete(waiter.closure);
    (waiter.closure.isOwn ? this.#ownWaiters : this.#waiters).hasLeft();
  }

  /** Ends the present era. @returns the era that is over when all closures so far are out */
  #endEra(): Era {
    if (this.#era.count === 0) return this.#lastEra; // nothing was put in since the last join
    this.#lastEra = this.#era;
    this.#eras.push(this.#era);
    this.#era = newEra();
    return this.#lastEra;
  }

  #isOver(era: Era): boolean {
    for (let oldest = this.#eras.first(); oldest?.count === 0; oldest = this.#eras.first()) {
      oldest.isOver = true;
      this.#eras.shift();
    }
    return era.isOver;
  }

  #note(closure: C, error: unknown): boolean {
    if (this.#error !== undefined || this.#closed !== undefined) return false;
    const errorOfDropped = this.#listener.onFailure(closure, error);
    this.#error = { value: error, errorOfDropped };
    this.#dropAll(
      ({ isOwn }) => !isOwn,
      (dropped) => this.#cancelled(dropped),
    );
    return true;
  }

  /** How a closure settles that the first failure has cancelled. */
  #cancelled(closure: C): Dropped {
    return { state: 'cancelled', value: this.#error?.errorOfDropped(closure) };
  }

  #dropAll(isWanted: (item: C) => boolean, outcomeOf: (dropped: C) => Dropped): void {
    const queued = this.#items.takeAll(isWanted);
    for (const { bytes } of queued) this.#bytes -= bytes;
    const held = [...this.#held].filter(isWanted);
    for (const closure of held) this.#leaveHeld(closure);
    const dropped = [...queued, ...held];
    for (const closure of dropped) this.#out(closure);
    for (const closure of dropped) closure.drop(outcomeOf(closure));
  }

  /** Serves the waiting calls, as far as the state allows. */
  #advance(): void {
    while (this.#waiters.size > 0 || this.#ownWaiters.size > 0) {
      const one = this.#waiters.first();
      const own = this.#ownWaiters.first();
      const isOwnOlder = (own?.number ?? Infinity) < (one?.number ?? Infinity);
      const [older, newer] = isOwnOlder ? [own, one] : [one, own];
      if (this.#serve(older)) continue;
      if (this.#waitsForRoom(newer) && this.#waitsForRoom(older)) return;
      if (!this.#serve(newer)) return;
    }
  }

  /** Whether it is room that the first call of a line waits for. */
  #waitsForRoom(waiter: Waiter<C> | undefined): boolean {
    return waiter?.kind === 'put' && (waiter.closure.isOwn || this.#error === undefined);
  }

  /** @returns false if the call has to wait */
  #serve(waiter: Waiter<C> | undefined): boolean {
    if (waiter === undefined) return false;
    const { kind } = waiter;
    const isOwn = kind === 'put' && waiter.closure.isOwn;
    const over = (isOwn ? undefined : this.#error) ?? this.#closed;
    if (over !== undefined) {
      // A closed queue never has room: a `put` need not wait for the closures in flight.
      const isHopeless = over === this.#closed && kind === 'put';
      const inFlight = over === this.#error ? this.#scheduledInFlight : this.#inFlight.size;
      if (inFlight > 0 && !isHopeless) return false;
      this.#shift(waiter, isOwn);
      if (over === this.#error) this.#error = undefined;
      if (kind === 'put') this.#out(waiter.closure);
      const wasBefore = waiter.number <= (this.#closed?.number ?? 0);
      waiter.reject(isOwn && wasBefore ? this.#closed?.dropped.value : over.value);
    } else if (kind === 'put') {
      if (!this.#hasRoom(waiter.closure)) return false;
      this.#shift(waiter, isOwn);
      try {
        this.#enter(waiter.closure);
        waiter.resolve();
      } catch (error) {
        waiter.reject(error);
      }
    } else if (kind === 'done') {
      this.#shift(waiter, false);
      waiter.resolve(this.#isIdle());
    } else {
      if (!this.#isOver(waiter.until)) return false;
      this.#shift(waiter, false);
      waiter.resolve();
    }
    return true;
  }

  /** Takes the waiter, which is the first of its line, out of it. */
  #shift(waiter: Waiter<C>, isOwn: boolean): void {
    (isOwn ? this.#ownWaiters : this.#waiters).shift();
    waiter.isGone = true;
    if (waiter.kind === 'put') this.#waiterOf.delete(waiter.closure);
  }
}
