/**
 * `cluster.map`: pulls items, has a function run with each, and yields the results.
 *
 * 1. An item is `ahead` from the moment that it is pulled until its result is yielded. No more than
 *    `LookAhead.most` are ahead, however slow the consumer is, and the source is asked for one item
 *    at a time.
 * 2. Nothing is pulled before the first `next`, after an item has failed (unless failures are
 *    yielded), nor after the end.
 * 3. The end comes once (`#end`): by the last result, an error, the signal, `return`, or the end of
 *    the cluster. It cancels every call that has not settled and closes the source. Then each
 *    `next` is done.
 * 4. A `next` that is pending is in `#waiters`; there are none while a result is ready to be yielded.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import {
  addAbortListener,
  hasAborted,
  reasonOfAbort,
  removeAbortListener,
} from '../../base/abort.ts';
import {
  type Checks,
  checkBoolean,
  checkFunction,
  checkOptions,
  checkString,
  invalidType,
  isIterable,
  oneOf,
} from '../../base/arguments.ts';
import { rejection } from '../../base/callers-frames.ts';
import { showAs } from '../../base/inspect.ts';
import { fieldOf, isObject, isThenable } from '../../base/thrown-value.ts';
import { CancelledError } from '../../errors/errors.ts';
import { Line, type Outcome } from '../queue/call-queue.ts';
import type { CallRules } from '../queue/call-rules.ts';
import { type AnyFunction, checkFunctionOrName } from '../queue/module-exports.ts';
import { giveFailure } from '../queue/unseen-functions.ts';
import {
  type Calls,
  type CheckedOptions,
  countFrom,
  inThisContext,
  limitsOf,
  OF_A_CALL,
  optionsOfCall,
  shownName,
} from './calls.ts';
import type { MapOptions } from './signatures.ts';

// How many items `map` may have pulled and not yielded. Without a number from the user: twice as
// many as the workers run at once, so that each has its next item when it has ended one. Where
// functions are so short that messages take longer than they do, that would leave workers waiting:
// then it grows to what comes out in HORIZON_MS, so that many items share a message.

const HORIZON_MS = 10;
/** The look-ahead grows when this many items have come out, no sooner. */
const SLOW_START = 128;
/** The time is taken after this many items, no sooner. */
const ROUND = 64;
const MOST = 8_192;

class LookAhead {
  readonly #isFixed: boolean;
  readonly #capacity: () => number;
  #most: number;
  #total = 0;
  /** The items that have come out since #began (performance.now()). */
  #count = 0;
  #began = 0;

  /** @param fixed - the number that the user has given */
  constructor(fixed: number | undefined, capacity: () => number) {
    this.#isFixed = fixed !== undefined;
    this.#most = fixed ?? 0;
    this.#capacity = capacity;
  }

  /** How many items may be pulled and not yielded. */
  get most(): number {
    return this.#isFixed ? this.#most : Math.max(this.#most, this.#least);
  }

  /** Whether it is time to pull until `ahead` is `most`: where many go together, many at a time. */
  isDue(ahead: number): boolean {
    const { most } = this;
    return ahead < most && (this.#isFixed || most === this.#least || ahead <= most / 2);
  }

  /** An item was yielded. */
  yielded(): void {
    if (this.#isFixed) return;
    this.#total += 1;
    this.#count += 1;
    if (this.#total < SLOW_START || this.#count < Math.max(ROUND, this.#most)) return;
    const now = performance.now();
    const perMs = this.#count / Math.max(0.001, now - this.#began);
    if (this.#began > 0) this.#most = Math.min(MOST, Math.floor(perMs * HORIZON_MS));
    this.#count = 0;
    this.#began = now;
  }

  get #least(): number {
    return 2 * Math.max(1, this.#capacity());
  }
}

type State = 'pending' | Outcome['state'];

/** An item that is ahead. */
type Entry = {
  state: State;
  /** The result, or the error. */
  value: unknown;
  /** Kept if failures are yielded. */
  readonly item: unknown;
  cancel: ((reason: unknown) => void) | undefined;
};

type Waiter = {
  readonly resolve: (result: IteratorResult<unknown, undefined>) => void;
  readonly reject: (error: unknown) => void;
};

const OF_A_MAP: Checks = {
  ...OF_A_CALL,
  concurrency: countFrom(1),
  ordered: checkBoolean,
  onError: oneOf('throw', 'settle'),
  key: checkFunction,
};

const asItIs = <T>(value: T): T => value;

const DONE: IteratorResult<unknown, undefined> = { done: true, value: undefined };

export class Mapped implements AsyncIterableIterator<unknown>, AsyncDisposable {
  readonly #calls: Calls;
  readonly #rules: CallRules;
  readonly #fn: AnyFunction | string;
  readonly #lookAhead: LookAhead;
  readonly #isOrdered: boolean;
  /** Failures are yielded, and end nothing. */
  readonly #settles: boolean;
  /** Gives the key of an item, under which its result is kept. */
  readonly #key: MapOptions['key'];
  readonly #source: ItemSource;
  readonly #signal: AbortSignal | undefined;
  /** The options of each call, without the signal. */
  readonly #options: CheckedOptions;
  /** The name of the function's export, when it is known. */
  #name: string | undefined;
  #hasBegun = false;
  #isOver = false;
  #isPumping = false;
  /** No more items come. */
  #hasEnded = false;
  /** What is thrown at the end, after the results of what is ahead. */
  #failure: { value: unknown } | undefined;
  /** An item has failed, which will be thrown. */
  #hasFailed = false;
  /** The line of the cluster is full. */
  #isFull = false;
  #ahead = 0;
  /** How many items were pulled. */
  #pulled = 0;
  /** The results: in order those of all items that are ahead, else those that have settled. */
  readonly #line = new Line<Entry>(() => true);
  readonly #pending = new Set<Entry>();
  readonly #waiters = new Line<Waiter>(() => true);
  readonly #onAbort = (): void => this.#fail(reasonOfAbort(this.#signal));
  readonly #onChange = (): void => this.#look();

  static {
    showAs(Mapped.prototype, (mapped) => ({
      name: mapped.#name ?? shownName(mapped.#fn),
      facts: mapped.#facts,
    }));
  }

  /** @throws TypeError, RangeError, InvalidArgumentError */
  constructor(calls: Calls, fn: unknown, items: unknown, given: MapOptions | undefined) {
    checkFunctionOrName(fn);
    if (!isSource(items)) {
      const remedy = typeof items === 'string' ? 'write [...text] for its characters' : undefined;
      throw invalidType('items', 'an iterable or an async iterable', items, remedy);
    }
    const { concurrency, ordered, onError, key, ...of } = checkOptions('options', given, OF_A_MAP);
    const { rules } = calls.host;
    this.#calls = calls;
    this.#rules = rules;
    this.#fn = fn;
    const options = optionsOfCall(of, rules);
    this.#signal = options.limits.signal;
    this.#options = { ...options, limits: limitsOf({ timeoutMs: options.limits.timeoutMs }) };
    this.#lookAhead = new LookAhead(concurrency, () => rules.engine.capacity);
    this.#isOrdered = ordered !== false;
    this.#settles = onError === 'settle';
    this.#key = key && inThisContext(key);
    this.#source = new ItemSource(items);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#hasBegun) this.#begin();
    if (this.#waiters.size === 0) {
      const result = this.#take();
      if (result !== undefined) {
        this.#pump();
        return result;
      }
    }
    return new Promise((resolve, reject) => {
      if (this.#waiters.size === 0) this.#rules.changes.add(this.#onChange);
      this.#waiters.push({ resolve, reject });
      this.#pump();
      this.#serve();
    });
  }

  /** Cancels what is in flight. */
  async return(): Promise<IteratorResult<unknown, undefined>> {
    this.#hasBegun = true;
    if (this.#isOver) return DONE;
    this.#failure = undefined;
    const { isPulling } = this.#source;
    const closed = this.#end();
    this.#serve();
    if (isPulling) return DONE; // the source may never give the item, nor be closed before
    const failed = await closed;
    if (failed !== undefined) throw failed.error;
    return DONE;
  }

  async throw(error?: unknown): Promise<IteratorResult<unknown, undefined>> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** How far it is, for people. */
  get #facts(): string[] {
    if (this.#isOver) return ['ended'];
    return this.#hasBegun ? ['running', `${this.#ahead} ahead`] : ['not begun'];
  }

  #begin(): void {
    this.#hasBegun = true;
    if (hasAborted(this.#signal)) this.#fail(reasonOfAbort(this.#signal));
    if (this.#isOver) return;
    if (this.#signal !== undefined) addAbortListener(this.#signal, this.#onAbort);
    const { host } = this.#calls;
    const { resolver } = host;
    try {
      if (this.#key !== undefined) this.#calls.checkKeeps();
      this.#name = resolver.isBusy ? undefined : resolver.known(this.#fn);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#name !== undefined) return;
    const found = resolver.inOrder<string>(this.#fn, undefined, asItIs, asItIs);
    host.keepAlive(found).then(
      (name) => {
        this.#name = name;
        this.#pump();
        this.#serve();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  // ---------------------------------------------------------------- results

  /** The next result as a promise; undefined if there is none yet. */
  #take(): Promise<IteratorResult<unknown, undefined>> | undefined {
    if (this.#isOver) return this.#last();
    const entry = this.#line.first();
    if (entry === undefined || entry.state === 'pending') {
      if (this.#ahead > 0 || !this.#hasEnded) return undefined;
      void this.#end();
      return this.#last();
    }
    this.#line.shift();
    this.#ahead -= 1;
    this.#lookAhead.yielded();
    const { state, value, item } = entry;
    const isReady = state === 'ready';
    if (!isReady) giveFailure(value);
    if (this.#settles) {
      const settled = isReady
        ? { status: 'fulfilled', value, item }
        : { status: 'rejected', reason: value, item };
      return Promise.resolve({ done: false, value: settled });
    }
    if (isReady) return Promise.resolve({ done: false, value });
    this.#failure = undefined; // one error is thrown
    void this.#end();
    return rejection(value);
  }

  /** After the end: the failure, once. */
  #last(): Promise<IteratorResult<unknown, undefined>> {
    if (this.#failure === undefined) return Promise.resolve(DONE);
    const { value } = this.#failure;
    this.#failure = undefined;
    giveFailure(value);
    return rejection(value);
  }

  #serve(): void {
    while (this.#waiters.size > 0) {
      const result = this.#take();
      if (result === undefined) return;
      const { resolve, reject } = this.#waiters.shift() as Waiter;
      result.then(resolve, reject);
      this.#pump();
    }
    this.#rules.changes.delete(this.#onChange);
  }

  /** Ends the map at once with an error, which the next `next` throws. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#failure = { value: error };
    void this.#end();
    this.#serve();
  }

  /** @returns a promise of the closing of the source; what goes wrong there is told by `return` */
  #end(): Promise<{ error: unknown } | undefined> {
    this.#isOver = true;
    if (this.#signal !== undefined) removeAbortListener(this.#signal, this.#onAbort);
    const reason = new CancelledError('The map that has called the function is over');
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const { cancel } of pending) cancel?.(reason);
    this.#line.takeAll();
    return this.#close();
  }

  async #close(): Promise<{ error: unknown } | undefined> {
    try {
      await this.#source.close();
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Workers have changed, or the cluster takes no more calls. */
  #look(): void {
    const { end } = this.#rules.queue;
    // What is ahead settles by itself, but the source may never give another item.
    if (end !== undefined && this.#ahead === 0) this.#fail(end.refusal);
    else this.#pump();
  }

  // ---------------------------------------------------------------- items

  #pump(): void {
    if (this.#isPumping || !this.#lookAhead.isDue(this.#ahead)) return;
    this.#isPumping = true; // the source may call `next` and so come here again
    while (this.#canPull) {
      try {
        const pulled = this.#source.pull();
        if (pulled instanceof Promise) this.#awaitPulled(pulled);
        else this.#onPulled(pulled);
      } catch (error) {
        this.#onSourceFailed(error);
      }
    }
    this.#isPumping = false;
  }

  get #canPull(): boolean {
    const isBlocked = this.#isOver || this.#hasEnded || this.#hasFailed || this.#isFull;
    if (isBlocked || this.#name === undefined || this.#source.isPulling) return false;
    return this.#ahead < this.#lookAhead.most;
  }

  #awaitPulled(pulled: Promise<Pulled>): void {
    pulled.then(
      (result) => {
        this.#onPulled(result);
        this.#pump();
        this.#serve();
      },
      (error: unknown) => {
        this.#onSourceFailed(error);
        this.#serve();
      },
    );
  }

  #onPulled({ done, value: item }: Pulled): void {
    if (this.#isOver) return;
    if (done === true) {
      this.#hasEnded = true;
      return;
    }
    const { end } = this.#rules.queue;
    if (end !== undefined) {
      this.#endAfter(end.refusal);
      return;
    }
    const entry: Entry = {
      state: 'pending',
      value: undefined,
      item: this.#settles ? item : undefined,
      cancel: undefined,
    };
    this.#ahead += 1;
    this.#pending.add(entry);
    if (this.#isOrdered) this.#line.push(entry);
    try {
      this.#call(entry, item);
    } catch (error) {
      this.#settle(entry, 'failed', error);
    }
  }

  #onSourceFailed(error: unknown): void {
    if (this.#isOrdered) this.#endAfter(error);
    else this.#fail(error);
  }

  /** Throws `error` after the results of what is ahead. */
  #endAfter(error: unknown): void {
    this.#hasEnded = true;
    this.#failure = { value: error };
    void this.#close();
  }

  /** @throws the errors of wrong arguments */
  #call(entry: Entry, item: unknown): void {
    const options = this.#optionsOf(item);
    const { cancel, room } = this.#calls.start(this.#fn, [item], options, (state, value) => {
      if (entry.state !== 'pending') return false;
      this.#settle(entry, state, value);
      return true;
    });
    entry.cancel = cancel;
    if (room === undefined) return;
    this.#isFull = true;
    room.then(
      () => {
        this.#isFull = false;
        this.#pump();
      },
      (error: unknown) => {
        this.#isFull = false;
        this.#settle(entry, 'failed', error);
      },
    );
  }

  #settle(entry: Entry, state: State, value: unknown): void {
    if (entry.state !== 'pending') return;
    entry.state = state;
    entry.value = value;
    entry.cancel = undefined;
    if (!this.#pending.delete(entry)) return; // the map is over
    if (!this.#isOrdered) this.#line.push(entry);
    if (state !== 'ready' && !this.#settles) this.#hasFailed = true;
    this.#serve();
  }

  #optionsOf(item: unknown): CheckedOptions {
    const { onProgress } = this.#options;
    const key = this.#key;
    const index = this.#pulled++;
    if (onProgress === undefined && key === undefined) return this.#options;
    const options = { ...this.#options };
    if (onProgress !== undefined) options.onProgress = (value) => onProgress(value, item);
    if (key === undefined) return options;
    options.key = key(item, index);
    checkString('options.key(item, index)', options.key);
    return options;
  }
}

// The items of `map`, one after the other, from an iterable or an async iterable.

/** What `pull` gives: the next item, or that there is none. */
type Pulled = IteratorResult<unknown, unknown>;

const isSource = (value: unknown): value is Iterable<unknown> | AsyncIterable<unknown> =>
  isIterable(value) || typeof fieldOf(value, Symbol.asyncIterator) === 'function';

/**
 * Reads a result once, as any loop does.
 *
 * @throws TypeError: an iterator has given something else; the error of a getter
 */
function checked(result: unknown): Pulled {
  if (!isObject(result)) {
    throw new TypeError(`Iterator result ${inspect(result)} is not an object`);
  }
  const pulled: Partial<Pulled> = result;
  return pulled.done ? { done: true, value: undefined } : { done: false, value: pulled.value };
}

/** Calls the source in the async context in which `map` was called. */
class ItemSource {
  readonly #items: Iterable<unknown> | AsyncIterable<unknown>;
  readonly #inItsContext = AsyncLocalStorage.snapshot();
  #iterator: Iterator<unknown> | AsyncIterator<unknown> | undefined;
  #isAsync = false;
  /** A promise of `pull` is pending. */
  isPulling = false;
  #hasEnded = false;

  constructor(items: Iterable<unknown> | AsyncIterable<unknown>) {
    this.#items = items;
  }

  /**
   * The next item: at once if the source gives it at once. Promises among the items of an iterable
   * are awaited, as by `for await`. Is not called again before its promise has settled, nor after
   * the end.
   *
   * @throws (rejects) what the source throws
   */
  pull(): Pulled | Promise<Pulled> {
    try {
      const next = this.#inItsContext(() => this.#opened().next());
      if (isThenable(next)) return this.#later(next, false);
      const pulled = checked(next);
      if (pulled.done === true) this.#hasEnded = true;
      else if (!this.#isAsync && isThenable(pulled.value)) return this.#later(pulled.value, true);
      return pulled;
    } catch (error) {
      this.#hasEnded = true; // an iterator that has thrown is not closed, as by `for`
      throw error;
    }
  }

  /**
   * Tells the source that no more items are wanted, unless it has ended.
   *
   * @returns what its `return` gives: a promise that may stay pending while an item is pulled
   */
  close(): unknown {
    if (this.#hasEnded || this.#iterator === undefined) return undefined;
    this.#hasEnded = true;
    return this.#inItsContext(() => this.#iterator?.return?.());
  }

  #opened(): Iterator<unknown> | AsyncIterator<unknown> {
    if (this.#iterator !== undefined) return this.#iterator;
    const asynchronous = (this.#items as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator];
    this.#isAsync = typeof asynchronous === 'function';
    this.#iterator = this.#isAsync
      ? (this.#items as AsyncIterable<unknown>)[Symbol.asyncIterator]()
      : (this.#items as Iterable<unknown>)[Symbol.iterator]();
    return this.#iterator;
  }

  /** @param isItem - if it rejects, the iterator, which knows nothing of it, is closed */
  async #later(given: PromiseLike<unknown>, isItem: boolean): Promise<Pulled> {
    this.isPulling = true;
    try {
      const value = await given;
      if (isItem) return { done: false, value };
      const pulled = checked(value);
      if (pulled.done === true) this.#hasEnded = true;
      return pulled;
    } catch (error) {
      if (!isItem) this.#hasEnded = true;
      throw error;
    } finally {
      this.isPulling = false;
    }
  }
}
