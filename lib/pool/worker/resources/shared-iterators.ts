/**
 * The iterators of a node's data sets, as the functions of one of its threads see them: each call
 * goes to the thread that has the iterator, and its result comes back as a copy.
 */

import { decode } from '../../../record/encoded-error.ts';
import { checkKept } from '../../../values/lost-values.ts';
import { packArguments } from '../../../values/packed-arguments.ts';
import { unpackValue } from '../../../values/value.ts';
import { type DrawMethod, STATE } from '../protocol.ts';

type Waiting = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};

export class SharedIterators {
  readonly #post: (id: number, request: Uint8Array) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** @param post - sends the packed arguments of `WorkerResources.draw` */
  constructor(post: (id: number, request: Uint8Array) => void) {
    this.#post = post;
  }

  /** Resolves when the data set or iterator is made. @throws the error why it cannot be made */
  async open(iterator: number): Promise<AsyncIterableIterator<unknown>> {
    await this.#call(iterator, 'open');
    const call = (method: DrawMethod, value: unknown): Promise<IteratorResult<unknown>> =>
      this.#call(iterator, method, value) as Promise<IteratorResult<unknown>>;
    const shared: AsyncIterableIterator<unknown> = {
      next: (value?: unknown) => call('next', value),
      return: (value?: unknown) => call('return', value),
      [Symbol.asyncIterator]: () => shared,
    };
    return shared;
  }

  /** `bytes`: the packed result, or an encoded error. */
  answered(id: number, state: number, bytes: Uint8Array): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    try {
      if (state === STATE.ready) waiting?.resolve(unpackValue(bytes));
      else waiting?.reject(decode(bytes).value);
    } catch (error) {
      waiting?.reject(error);
    }
  }

  #call(...request: [iterator: number, method: DrawMethod, value?: unknown]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let bytes: Uint8Array;
      try {
        bytes = packArguments(request, []);
        checkKept(request, bytes);
      } catch (error) {
        reject(error as Error);
        return;
      }
      const id = ++this.#lastId;
      this.#waiting.set(id, { resolve, reject });
      this.#post(id, bytes);
    });
  }
}
