/** The items of `map`, one after the other, from an iterable or an async iterable. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import { isIterable } from '../../base/arguments.ts';
import { fieldOf, isObject, isThenable } from '../../base/thrown-value.ts';

/** What `pull` gives: the next item, or that there is none. */
export type Pulled = IteratorResult<unknown, unknown>;

export const isSource = (value: unknown): value is Iterable<unknown> | AsyncIterable<unknown> =>
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
export class ItemSource {
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
      if (isThenable(next)) return this.#later(next as Promise<Pulled>);
      const pulled = checked(next);
      if (pulled.done === true) this.#hasEnded = true;
      else if (!this.#isAsync && isThenable(pulled.value)) return this.#awaited(pulled.value);
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

  async #later(next: PromiseLike<Pulled>): Promise<Pulled> {
    this.isPulling = true;
    try {
      const pulled = checked(await next);
      if (pulled.done === true) this.#hasEnded = true;
      return pulled;
    } catch (error) {
      this.#hasEnded = true;
      throw error;
    } finally {
      this.isPulling = false;
    }
  }

  /** An item that is a promise. If it rejects, the iterator, which knows nothing of it, is closed. */
  async #awaited(item: unknown): Promise<Pulled> {
    this.isPulling = true;
    try {
      return { done: false, value: await item };
    } finally {
      this.isPulling = false;
    }
  }
}
