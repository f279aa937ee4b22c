/**
 * The queue of calls for workers, as a pure state machine. It knows neither workers nor results,
 * and waits for no timer or event.
 *
 * 1. Every call that was put in is in one phase of its life (below), which only the queue
 *    changes; `#live` has those that are not out, the oldest first, `#counts` their number by phase.
 * 2. What waits for room gets it by priority, and in each priority in order: else small calls would
 *    pass a large one without end.
 * 3. There is room for a call if with it neither limit is exceeded; or if nothing is queued, however
 *    large it is, so that no call waits for ever. `queuedBytes` is the sum of `bytes` of what is queued.
 * 4. `putBack` needs no room, so that workers which fail together cannot wait for each other. (In
 *    TensorFlow they can.) It goes to the head; a suspect, which may have killed its worker, to
 *    the tail.
 * 5. A call that waits for its arguments (`isHeld`) is outside the line, from when it is put in
 *    until `release`. It takes no room, and `release` needs none. One that was in flight and is to be
 *    run again later (`delay`) is outside the line in the same way.
 * 6. The line has an order by priority, and in each priority by time. A worker takes the first
 *    call that it may run (`placement`). The head is that of the call's priority; the
 *    tail, where a suspect goes, is behind everything that is queued, whatever its priority.
 * 7. After `close` nothing new is put in. Calls in flight stay there until `out`.
 */

import { type InLine, PRIORITIES, type Runner } from './call-lines.ts';
import type { NeverReady } from './readiness.ts';

/** The part of a call that the queue uses. */
export interface Queued extends InLine {
  readonly life: Life;
  /** Called by the queue alone. Calls nobody. `worker`: the index of that which has taken it. */
  become(life: Life, worker?: number): void;
  /** Called after `become`, when the call has settled or is out. It may call the queue. */
  tell(): void;
  /** It waits for its arguments (invariant 5). */
  readonly isHeld: boolean;
  /** It may have killed its worker: it has to run alone (invariant 4). */
  readonly isSuspect: boolean;
  /** How many bytes its arguments take. Does not change while it is queued (invariant 3). */
  readonly bytes: number;
  /** The number of its `put`. Only the queue writes it. */
  number?: number;
  /** Called just before the call is queued or held. If it throws, the call is not put in. */
  enter(): void;
}

/** Why no call is taken any more. */
export type End = {
  /** The error of later calls. */
  readonly refusal: unknown;
  /** How settles what has not begun. Left out: what was put in goes on. */
  readonly dropped?: Outcome;
  /** Why no worker will be ready any more. */
  readonly why?: NeverReady;
};

export interface CallQueueListener<C> {
  /** `take` may return a call now. */
  onWork(): void;
  /** The call is out. */
  onOut(call: C): void;
}

/** The queued calls, as an engine sees them. */
export interface QueuedCalls<C> {
  /** How many calls are queued. */
  readonly queued: number;
  /**
   * The next queued call that the worker may run; it is in flight from here on. Undefined: none
   * is queued, or (`line.hasPlaced`) other workers may run what is queued.
   */
  take(runner: Runner): C | undefined;
  /**
   * The call that `take` would give. If it is a suspect, only a worker that has no other call may
   * take it, and gets no other until it has ended.
   */
  next(runner: Runner): C | undefined;
  /** The queued calls that only some workers may run. */
  readonly line: Pick<CallLines<InLine>, 'hasPlaced' | 'placedOn'>;
}

const QUEUED: Life = { at: 'queued' };
const IN_FLIGHT: Life = { at: 'in-flight' };

export class CallQueue<C extends Queued> implements QueuedCalls<C> {
  readonly #maxQueued: number;
  readonly #maxBytes: number;
  readonly #listener: CallQueueListener<C>;
  readonly #items = new CallLines<C>(({ life }) => life.at === 'queued');
  /** The queued calls, in their order. */
  readonly line: Pick<CallLines<C>, 'firsts' | 'hasPlaced' | 'placedOn'> = this.#items;
  /** What waits for room, by priority. */
  readonly #room = PRIORITIES.map(() => new Line<C>(({ life }) => life.at === 'waiting'));
  /** What was put in and is not out. */
  readonly #live = new Line<C>(({ life }) => life.at !== 'out');
  #last = 0;
  readonly #counts: Record<Place, number> = {
    new: 0,
    waiting: 0,
    held: 0,
    queued: 0,
    'in-flight': 0,
    delayed: 0,
    out: 0,
  };
  // What follows is written here alone.
  /** The bytes that the arguments of the queued calls take. */
  queuedBytes = 0;
  end: End | undefined;

  /**
   * @param maxQueued - `put` finds no room while this number of calls is queued
   * @param maxBytes - nor while the arguments of those queued, with its own, take more bytes
   */
  constructor(maxQueued: number, maxBytes: number, listener: CallQueueListener<C>) {
    this.#maxQueued = maxQueued;
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  get queued(): number {
    return this.#counts.queued;
  }

  count(place: Place): number {
    return this.#counts[place];
  }

  /** How many calls are not out. */
  get size(): number {
    return this.#live.size;
  }

  /** The calls that are not out and for which `isWanted` is true. */
  some(isWanted: (call: C) => boolean): C[] {
    return this.#live.items.filter(isWanted);
  }

  /** @returns a function that says whether all calls are out that were put in before `mark()` */
  mark(): () => boolean {
    const last = this.#last;
    return () => (this.#live.first()?.number ?? Number.POSITIVE_INFINITY) > last;
  }

  /** Whether nothing more runs but what is in flight. */
  get isClosed(): boolean {
    return this.end?.dropped !== undefined;
  }

  /**
   * Puts a call in, or has it wait for room.
   *
   * @param makeWaiter - makes what hears of it, if it has to wait
   * @param isEarlier - it was made before `close`: only `dropped` refuses it
   * @returns whether it is in
   * @throws the error of `enter`, or of `close`: the call is out
   */
  put(call: C, makeWaiter: (call: C) => RoomWaiter, isEarlier = false): boolean {
    if (this.end !== undefined && (this.isClosed || !isEarlier)) {
      const { refusal } = this.end;
      call.become({ at: 'out', refusal });
      call.tell();
      throw refusal;
    }
    // Nothing waits for room that goes before it.
    const isNext =
      this.#counts.waiting === 0 ||
      this.#room.every(({ size }, rank) => size === 0 || rank > rankOf(call));
    if (isNext && this.#hasRoom(call)) {
      this.#enter(call);
      return true;
    }
    this.#move(call, { at: 'waiting', waiter: makeWaiter(call) });
    this.#room[rankOf(call)]?.push(call);
    return false;
  }

  /** A call does not wait for room any more, and may be put in later. @returns false if it did not */
  withdraw(call: C): boolean {
    if (call.life.at !== 'waiting') return false;
    // Taken out of the line, not left there as gone: put in later it must not be in the line twice.
    this.#room[rankOf(call)]?.takeAll((each) => each === call);
    this.#live.takeAll((each) => each === call);
    this.#move(call, { at: 'new' });
    this.#serve();
    return true;
  }

  next(runner?: Runner): C | undefined {
    return this.#items.first(runner);
  }

  take(runner?: Runner): C | undefined {
    const call = this.#items.shift(runner);
    if (call === undefined) return undefined;
    this.#move(call, IN_FLIGHT, runner?.index);
    this.#serve();
    return call;
  }

  /** Queues a call that was in flight: ahead of all others, or, if it is a suspect, behind them. */
  putBack(call: C): void {
    this.#move(call, QUEUED);
    if (call.isSuspect) this.#items.pushLast(call);
    else this.#items.unshift(call);
    this.#listener.onWork();
  }

  /** Keeps a call that was in flight outside the line, until `release`, which `timer` calls. */
  delay(call: C, timer?: { clear(): void }): void {
    this.#move(call, { at: 'delayed', timer });
  }

  /** Queues a call that is held or delayed. @returns false if it is not any more */
  release(call: C): boolean {
    if (call.life.at !== 'held' && call.life.at !== 'delayed') return false;
    this.#queue(call);
    return true;
  }

  /**
   * Puts queued calls in flight again, because a worker that was given up still has them.
   *
   * @returns those that were queued; the others stay where they are
   */
  reclaim(calls: readonly C[]): C[] {
    const asked = new Set(calls);
    // Taken out of the line, not left there as gone: a call that is put back later must not be
    // in the line twice.
    const back = this.#items.takeAll((item) => asked.has(item));
    for (const call of back) this.#move(call, IN_FLIGHT);
    this.#serve();
    return back;
  }

  /** The call, which is in flight, settles now; its attempt goes on. */
  decide(call: C, outcome: Outcome): void {
    call.become({ at: 'in-flight', outcome });
    call.tell();
  }

  /**
   * The call leaves the queue, from wherever it is: it settles so, unless it has settled. One that
   * was not put in, or waits for room, is refused with the value of the outcome.
   */
  out(call: C, outcome: Outcome): void {
    const { life } = call;
    if (life.at === 'out') return;
    const isIn = life.at !== 'new' && life.at !== 'waiting';
    this.#move(call, isIn ? { at: 'out', outcome } : { at: 'out', refusal: outcome.value });
    if (life.at === 'queued') this.#items.hasLeft(call);
    if (life.at === 'waiting') this.#room[rankOf(call)]?.hasLeft();
    this.#gone(call);
    if (life.at === 'waiting') life.waiter.refused(outcome.value);
    this.#serve();
  }

  /** From now on nothing is put in. Only the first `dropped` counts. */
  close(end: End): void {
    if (this.isClosed) return;
    this.end = end;
    const { dropped } = end;
    if (dropped === undefined) return;
    for (const call of this.some(({ life }) => life.at !== 'in-flight')) {
      this.out(call, dropped);
    }
  }

  #enter(call: C): void {
    try {
      call.enter();
    } catch (error) {
      this.#move(call, { at: 'out', refusal: error });
      this.#gone(call);
      throw error;
    }
    if (call.isHeld) this.#move(call, { at: 'held' });
    else this.#queue(call);
  }

  #queue(call: C): void {
    this.#move(call, QUEUED);
    this.#items.push(call);
    this.#listener.onWork();
  }

  #hasRoom({ bytes }: C): boolean {
    const { queued } = this;
    return queued === 0 || (queued < this.#maxQueued && this.queuedBytes + bytes <= this.#maxBytes);
  }

  #move(call: C, life: Life, worker?: number): void {
    const { life: before, bytes } = call;
    call.become(life, worker); // if it throws, nothing has changed
    this.#counts[before.at] -= 1;
    this.#counts[life.at] += 1;
    if (before.at === 'queued') this.queuedBytes -= bytes;
    if (life.at === 'queued') this.queuedBytes += bytes;
    if (before.at === 'new' && life.at !== 'out') {
      call.number = ++this.#last;
      this.#live.push(call);
    }
    if (before.at !== 'new' && life.at === 'out') this.#live.hasLeft();
  }

  #gone(call: C): void {
    call.tell();
    this.#listener.onOut(call);
  }

  /** Lets in what waits for room, as far as there is room. */
  #serve(): void {
    while (!this.isClosed) {
      const line = this.#room.find(({ size }) => size > 0);
      const call = line?.first();
      if (call?.life.at !== 'waiting' || !this.#hasRoom(call)) return;
      const { waiter } = call.life;
      line?.shift();
      try {
        this.#enter(call);
      } catch (error) {
        waiter.refused(error);
        continue;
      }
      waiter.entered();
    }
  }
}

// The lines of the queued calls: first those of high priority, then normal, then low; in each priority
// first in, first out. Calls that only some workers may run have a line of their own for each
// placement, so that a worker passes those that it may not run at once, however many they are.

const ANYWHERE = '';

class CallLines<C extends InLine> {
  readonly #isHere: (item: C) => boolean;
  /** By priority, the first served first: by placement. Only that of ANYWHERE may be empty. */
  readonly #lines: Map<string, Line<C>>[];
  #first = 0;
  #last = 0;

  /** @param isHere - as of a Line */
  constructor(isHere: (item: C) => boolean) {
    this.#isHere = isHere;
    this.#lines = PRIORITIES.map(() => new Map([[ANYWHERE, new Line<C>(isHere)]]));
  }

  /** Whether items are here that only some workers may run. */
  get hasPlaced(): boolean {
    return this.#lines.some(({ size }) => size > 1);
  }

  /** The workers that items are placed on, by index. */
  get placedOn(): number[] {
    if (!this.hasPlaced) return [];
    return this.firsts.flatMap(({ placement }) => placement?.worker ?? []);
  }

  /** The first item of each priority and placement: the oldest of all is among them. */
  get firsts(): C[] {
    return this.#lines.flatMap((lines) =>
      [...lines.values()].flatMap((line) => line.first() ?? []),
    );
  }

  push(item: C): void {
    this.#pushAt(item, rankOf(item));
  }

  /** Behind everything that is here now, whatever its priority. */
  pushLast(item: C): void {
    const isFilled = (lines: Map<string, Line<C>>): boolean =>
      [...lines.values()].some(({ size }) => size > 0);
    this.#pushAt(item, Math.max(rankOf(item), this.#lines.findLastIndex(isFilled)));
  }

  /** Ahead of all of its priority. */
  unshift(item: C): void {
    this.#first -= 1;
    item.order = this.#first;
    this.#enter(item, rankOf(item)).unshift(item);
  }

  /** The next item that the runner may run; without a runner, one that any worker may run. */
  first(runner?: Runner): C | undefined {
    return this.#next(runner)?.first();
  }

  shift(runner?: Runner): C | undefined {
    const item = this.#next(runner)?.shift();
    if (item !== undefined) this.#left(item);
    return item;
  }

  /** Has to be called when `isHere` has become false for an item of the lines. */
  hasLeft(item: C): void {
    this.#lines[item.rank ?? 0]?.get(keyOf(item))?.hasLeft();
    this.#left(item);
  }

  /** Removes the items for which `isWanted` is true, and returns them in order. */
  takeAll(isWanted: (item: C) => boolean): C[] {
    const taken = this.#lines.flatMap((lines) =>
      [...lines.values()]
        .flatMap((line) => line.takeAll(isWanted))
        .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0)),
    );
    for (const item of taken) this.#left(item);
    return taken;
  }

  #pushAt(item: C, rank: number): void {
    this.#last += 1;
    item.order = this.#last;
    this.#enter(item, rank).push(item);
  }

  /** @returns the line of the item, which it enters next */
  #enter(item: C, rank: number): Line<C> {
    item.rank = rank;
    const lines = this.#lines[rank] as Map<string, Line<C>>;
    const key = keyOf(item);
    let line = lines.get(key);
    if (line === undefined) lines.set(key, (line = new Line<C>(this.#isHere)));
    return line;
  }

  #left(item: C): void {
    if (item.placement === undefined) return;
    const lines = this.#lines[item.rank ?? 0];
    const key = keyOf(item);
    if (lines?.get(key)?.size === 0) lines.delete(key);
  }

  #next(runner: Runner | undefined): Line<C> | undefined {
    let canRun: ReturnType<Runner['abilities']> | undefined;
    for (const lines of this.#lines) {
      let found: Line<C> | undefined;
      let least = Number.POSITIVE_INFINITY;
      for (const line of lines.values()) {
        const item = line.first();
        if (item === undefined || (item.order ?? 0) > least) continue;
        const { placement } = item;
        if (placement !== undefined) {
          canRun ??= runner?.abilities();
          if (canRun?.(placement) !== true) continue;
        }
        if (runner?.lacks?.(item) === true) continue;
        found = line;
        least = item.order ?? 0;
      }
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** The position of its priority in PRIORITIES. */
const rankOf = ({ priority = 'normal' }: InLine): number => PRIORITIES.indexOf(priority);
const keyOf = ({ placement }: InLine): string => placement?.key ?? ANYWHERE;

/**
 * A line, first in, first out, whose items may leave from anywhere: an item that has left stays
 * in the arrays, where it is skipped, until most items there have left. So each call takes the
 * same time on average, however long the line is.
 */
export class Line<T> {
  readonly #isHere: (item: T) => boolean;
  #head: T[] = []; // reversed: the next item is at the end
  #tail: (T | undefined)[] = [];
  #next = 0; // in #tail
  /** Written here alone. */
  size = 0;
  /** The number of items in the arrays that have left. */
  #left = 0;

  /** @param isHere - false from the moment on in which an item leaves other than by `shift` */
  constructor(isHere: (item: T) => boolean) {
    this.#isHere = isHere;
  }

  /** All items, in order. */
  get items(): T[] {
    const all = [...this.#head.toReversed(), ...(this.#tail.slice(this.#next) as T[])];
    return all.filter(this.#isHere);
  }

  push(item: T): void {
    this.size += 1;
    this.#tail.push(item);
  }

  unshift(item: T): void {
    this.size += 1;
    this.#head.push(item);
  }

  /** The first item, which stays in the line. */
  first(): T | undefined {
    for (;;) {
      const item = this.#head.length > 0 ? this.#head.at(-1) : this.#tail[this.#next];
      if (item === undefined || this.#isHere(item)) return item;
      this.#drop();
      this.#left -= 1;
    }
  }

  shift(): T | undefined {
    const item = this.first();
    if (item === undefined) return undefined;
    this.size -= 1;
    this.#drop();
    return item;
  }

  /** Has to be called when `isHere` has become false for an item of the line. */
  hasLeft(): void {
    this.size -= 1;
    this.#left += 1;
    if (this.#left <= this.size) return;
    this.#tail = this.size === 0 ? [] : this.items;
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
  }

  /** Removes the items for which `isWanted` is true, and returns them in order. */
  takeAll(isWanted: (item: T) => boolean = () => true): T[] {
    const here = this.items;
    const taken = here.filter(isWanted);
    this.#tail = here.filter((item) => !isWanted(item));
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
    this.size = this.#tail.length;
    return taken;
  }

  /** Takes the first item out of the arrays. */
  #drop(): void {
    if (this.#head.length > 0) {
      this.#head.pop();
      return;
    }
    this.#tail[this.#next] = undefined; // so that the array does not keep the item alive
    this.#next += 1;
    if (this.#next > 1_024 && this.#next * 2 > this.#tail.length) {
      this.#tail = this.#tail.slice(this.#next);
      this.#next = 0;
    }
  }
}

// The life of a call in the queue: where it is, and how it has settled. `next` is the only way from
// one phase to another.
//
// 1. A call settles once: `outcome` is there from then on. A call in flight may settle before its
//    attempt ends, by a deadline, a signal or another worker; it stays in flight until the attempt has
//    ended.
// 2. What is out stays out. Without an outcome it was refused: nobody has its value.

/** What a call settles with. */
export type Outcome = {
  readonly state: 'ready' | 'failed' | 'cancelled';
  readonly value: unknown;
  /** It was stored before, or the store has failed: the function was not run. */
  readonly isKept?: boolean;
};

/**
 * Is told how a call has settled. Only the first call has an effect.
 *
 * @returns whether this was the first call
 */
export type Settle = (state: Outcome['state'], value: unknown) => boolean;

/** Hears of a call that waits for room. One of both is called, once. */
export type RoomWaiter = {
  entered(): void;
  /** It is out. */
  refused(error: unknown): void;
};

export type Life =
  | { readonly at: 'new' }
  /** For room. */
  | { readonly at: 'waiting'; readonly waiter: RoomWaiter }
  /** For its arguments, or a stored result. */
  | { readonly at: 'held' }
  | { readonly at: 'queued' }
  | { readonly at: 'in-flight'; readonly outcome?: Outcome }
  /** It has failed, and is queued again later: by `timer`. */
  | { readonly at: 'delayed'; readonly timer: { clear(): void } | undefined }
  | { readonly at: 'out'; readonly outcome: Outcome }
  /** That was told: from now on the value is its caller's alone. */
  | { readonly at: 'out'; readonly isTold: true }
  | { readonly at: 'out'; readonly refusal: unknown };

export type Place = Life['at'];

const MAY_FOLLOW: Readonly<Record<Place, readonly Place[]>> = {
  // On a node, whose coordinator has the queue, a call is in flight from the start.
  new: ['waiting', 'held', 'queued', 'in-flight', 'out'],
  waiting: ['new', 'held', 'queued', 'out'],
  held: ['queued', 'out'],
  queued: ['in-flight', 'out'],
  'in-flight': ['in-flight', 'queued', 'delayed', 'out'],
  delayed: ['queued', 'out'],
  out: [],
};

export const outcomeOf = (life: Life): Outcome | undefined =>
  'outcome' in life ? life.outcome : undefined;

/** A call that has settled. */
const SETTLED: readonly Place[] = ['in-flight', 'out'];

/** @returns the phase that follows: `to`, with the outcome that the call had before */
export function next(from: Life, to: Life): Life {
  const outcome = outcomeOf(from);
  const following = outcome === undefined ? MAY_FOLLOW[from.at] : SETTLED;
  if (from.at === 'out' || !following.includes(to.at)) {
    throw new Error(`A call that is ${from.at} cannot be ${to.at}`);
  }
  if (outcome === undefined) return to;
  return to.at === 'out' ? { at: 'out', outcome } : { at: 'in-flight', outcome };
}
