/**
 * An iterator of a data set, as the functions of its worker get it: `return` of what is iterated is
 * called once, when a function, the worker or the coordinator lets it go, or at its end.
 */

import { isObject } from '../../../base/thrown-value.ts';

/** What a data set function returns; anything else is refused. */
export type Dataset = Partial<Iterable<unknown> & AsyncIterable<unknown>> | null;

type Source = Partial<AsyncIterator<unknown>> | Partial<Iterator<unknown>>;

export class WorkerIterator implements AsyncIterableIterator<unknown> {
  readonly #source: Source;
  /** No serializer takes it: a copy would have no data set. */
  readonly uncloneable: symbol = Symbol('the iterator of a data set, which stays in its worker');
  /** `return` was called, or nothing is left for it to do. */
  #isLetGo = false;

  /** @throws TypeError: it is not iterable */
  static of(dataset: Dataset): WorkerIterator {
    const source = dataset?.[Symbol.asyncIterator]?.() ?? dataset?.[Symbol.iterator]?.();
    if (source !== undefined) return new WorkerIterator(source);
    throw new TypeError(
      'The data set is not iterable: its function must return an iterable or an async iterable',
    );
  }

  private constructor(source: Source) {
    this.#source = source;
  }

  /** Whether the data set is an iterator itself, as a generator is: it gives no second one. */
  isOnlyOneOf(dataset: Dataset): boolean {
    return (this.#source as unknown) === dataset;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(...value: [] | [unknown]): Promise<IteratorResult<unknown>> {
    if (this.#isLetGo) return { done: true, value: undefined };
    const result = (await this.#source.next?.(...(value as []))) as IteratorResult<unknown>;
    if (isObject(result) && result.done === true) await this.return();
    return result;
  }

  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    if (this.#isLetGo) return { done: true, value };
    this.#isLetGo = true;
    return (await this.#source.return?.(value)) ?? { done: true, value };
  }
}
