/**
 * The line in which closures wait for workers: TensorFlow's closure queue, as a state
 * machine of its own. It knows neither workers nor results, and nothing in it waits for a
 * timer or an event.
 *
 * 1. Every closure that was put in is in one place (`Queued.place`): waiting for room, in
 *    line, in flight, or out. What leaves the line without being taken has been told why.
 * 2. From the first failure until somebody has been told of it, nothing is in line and
 *    nothing is taken. (TensorFlow's workers go on until somebody looks.)
 * 3. Somebody is told when nothing is in flight any more, once: whoever has waited longest
 *    (for room, in `join` or `done`), else the next who comes.
 * 4. Who waits is served in order, whatever it waits for. So a `join` is a barrier: what is
 *    put in later waits until it is over, as TensorFlow has it.
 * 5. Putting back needs no room, and goes to the head: workers that fail together cannot
 *    wait for each other. (TensorFlow's can.)
 * 6. What is tagged for one worker is its own line, served first. It is neither counted nor
 *    cancelled with the others: it is what the worker needs before it can do anything.
 */

export type Place = 'new' | 'waiting' | 'queued' | 'in-flight' | 'out';

/** What the queue needs of a closure. */
export interface Queued {
  /** The queue's. */
  place: Place;
  /** It gets in line. What it throws refuses it: it is not put in. */
  enter(): void;
  /** It has left the line, or will not get in; it is out already. */
  drop(error: unknown): void;
}

type Waiter<C> =
  | { kind: 'put'; closure: C; resolve: () => void; reject: (error: unknown) => void }
  | { kind: 'join'; resolve: () => void; reject: (error: unknown) => void }
  | { kind: 'done'; resolve: (done: boolean) => void; reject: (error: unknown) => void };

/** First in, first out; and what comes back goes to the head. */
class Line<C> {
  #head: C[] = []; // the first is the last
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
    this.#tail[this.#next] = undefined; // what it holds is nobody's any more
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

export type ClosureQueueOptions = {
  /** More than so many wait for room. */
  maxQueued: number;
  /** There may be something to take. */
  onWork: () => void;
  /** What is in line when something has failed is dropped with this. */
  cancelled: (cause: unknown) => unknown;
};

export class ClosureQueue<C extends Queued> {
  readonly #options: ClosureQueueOptions;
  readonly #line = new Line<C>();
  readonly #tagged = new Map<number, Line<C>>();
  #taggedCount = 0;
  #queued = 0;
  /** In #line, but out. */
  #left = 0;
  #inFlight = 0;
  #waiters: Waiter<C>[] = [];
  #error: { value: unknown } | undefined;
  #closed: { value: unknown; dropped: unknown } | undefined;

  constructor(options: ClosureQueueOptions) {
    this.#options = options;
  }

  /** In line, without those that are tagged. */
  get queued(): number {
    return this.#queued;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether something has failed that nobody has been told of. */
  get hasFailed(): boolean {
    return this.#error !== undefined;
  }

  /** Undefined: it is in line. Else resolves when it is. Rejects with what has failed, or refuses it. */
  put(closure: C): Promise<void> | undefined {
    const isFree = this.#error === undefined && this.#closed === undefined;
    if (isFree && this.#waiters.length === 0 && this.#queued < this.#options.maxQueued) {
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

  /** For that worker only, before anything else. */
  putTagged(closure: C, tag: number): void {
    let line = this.#tagged.get(tag);
    if (line === undefined) this.#tagged.set(tag, (line = new Line()));
    closure.place = 'queued';
    line.push(closure);
    this.#taggedCount += 1;
    this.#options.onWork();
  }

  /** Whether anything is in line for one worker only. */
  get hasTagged(): boolean {
    return this.#taggedCount > 0;
  }

  /** What was tagged for that worker; it is out. */
  takeTagged(tag: number): C | undefined {
    const closure = this.#tagged.get(tag)?.shift();
    if (closure === undefined) return undefined;
    closure.place = 'out';
    this.#taggedCount -= 1;
    return closure;
  }

  /** The next one; it is in flight from here on. */
  take(): C | undefined {
    if (this.#error !== undefined || this.#closed !== undefined) return undefined;
    for (;;) {
      const closure = this.#line.shift();
      if (closure === undefined) return undefined;
      if (closure.place !== 'queued') {
        this.#left -= 1;
        continue;
      }
      closure.place = 'in-flight';
      this.#queued -= 1;
      this.#inFlight += 1;
      if (this.#waiters.length > 0) this.#advance();
      return closure;
    }
  }

  /** What was in flight is in line again, before all others; or dropped, if it is too late. */
  putBack(closure: C): void {
    this.#inFlight -= 1;
    if (this.#closed === undefined && this.#error === undefined) {
      closure.place = 'queued';
      this.#queued += 1;
      this.#line.unshift(closure);
      this.#options.onWork();
    } else {
      closure.place = 'out';
      closure.drop(this.#closed?.dropped ?? this.#options.cancelled(this.#error?.value));
    }
    this.#advance();
  }

  /** What was in flight has ended, well or cancelled. */
  end(closure: C): void {
    closure.place = 'out';
    this.#inFlight -= 1;
    if (this.#waiters.length > 0) this.#advance();
  }

  /** What was in flight has failed. True: as the first. */
  fail(closure: C, error: unknown): boolean {
    closure.place = 'out';
    this.#inFlight -= 1;
    const isFirst = this.#note(error);
    this.#advance();
    return isFirst;
  }

  /** What is in flight has failed, and goes on until it has ended. True: as the first. */
  report(error: unknown): boolean {
    return this.#note(error);
  }

  /** What is in line has failed before it was taken. True: as the first. */
  failQueued(closure: C, error: unknown): boolean {
    this.#leave(closure);
    const isFirst = this.#note(error);
    this.#advance();
    return isFirst;
  }

  /** Takes a closure out of line. False: it is not there. What waits for room is `reject`ed. */
  remove(closure: C, error?: unknown): boolean {
    if (closure.place === 'queued') {
      this.#leave(closure);
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

  /** Resolves when nothing is in line or in flight. Rejects with what has failed. */
  join(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ kind: 'join', resolve, reject });
      this.#advance();
    });
  }

  /** Whether nothing is in line or in flight. Waits, and rejects, only if something has failed. */
  done(): Promise<boolean> {
    if (this.#error === undefined && this.#closed === undefined) {
      return Promise.resolve(this.#isIdle());
    }
    return new Promise((resolve, reject) => {
      this.#waiters.push({ kind: 'done', resolve, reject });
      this.#advance();
    });
  }

  /** Nothing gets in any more: all are told `error`, and what is in line is `dropped`. */
  close(error: unknown, dropped: unknown): void {
    if (this.#closed !== undefined) return;
    this.#closed = { value: error, dropped };
    this.#dropAll(dropped);
    this.#advance();
  }

  #isIdle(): boolean {
    return this.#queued === 0 && this.#inFlight === 0;
  }

  #enter(closure: C): void {
    closure.place = 'out'; // if it is refused
    closure.enter();
    closure.place = 'queued';
    this.#queued += 1;
    this.#line.push(closure);
    this.#options.onWork();
  }

  /** `take` skips it, until there are more of those than of others. */
  #leave(closure: C): void {
    closure.place = 'out';
    this.#queued -= 1;
    this.#left += 1;
    if (this.#left <= this.#queued) return;
    this.#line.keep(({ place }) => place === 'queued');
    this.#left = 0;
  }

  #note(error: unknown): boolean {
    if (this.#error !== undefined || this.#closed !== undefined) return false;
    this.#error = { value: error };
    this.#dropAll(this.#options.cancelled(error));
    return true;
  }

  #dropAll(error: unknown): void {
    const dropped = this.#line.takeAll().filter(({ place }) => place === 'queued');
    this.#queued = 0;
    this.#left = 0;
    for (const closure of dropped) closure.place = 'out';
    for (const closure of dropped) closure.drop(error);
  }

  /** Serves who waits, in order, as far as the state allows. */
  #advance(): void {
    for (;;) {
      const first = this.#waiters[0];
      if (first === undefined) return;
      const over = this.#error ?? this.#closed;
      if (over !== undefined) {
        // Room will never be: who waits for it need not wait for what is in flight.
        const isHopeless = over === this.#closed && first.kind === 'put';
        if (this.#inFlight > 0 && !isHopeless) return;
        this.#waiters.shift();
        if (over === this.#error) this.#error = undefined;
        if (first.kind === 'put') first.closure.place = 'out';
        first.reject(over.value);
        continue;
      }
      if (first.kind === 'put') {
        if (this.#queued >= this.#options.maxQueued) return;
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
