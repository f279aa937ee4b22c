/**
 * The data sets and iterators of one worker, made once and kept for the functions that use them.
 *
 * On a node with several slots they are made in one thread, which runs no functions; the
 * functions of the slots draw from it (SharedIterators at their end, `draw` here).
 */

import { attempt, isObject, namedMessageOf } from '../../base/thrown-value.ts';
import { ClosureInputError } from '../../errors/errors.ts';
import { decode } from '../../record/encoded-error.ts';
import { checkKept } from '../../values/lost-values.ts';
import { type PassedArguments, packArguments, unpackValue } from '../../values/value.ts';
import { type DrawMethod, STATE, type WorkerResource } from './messages.ts';

// An iterator of a data set, as the functions of its worker get it: `return` of what is iterated is
// called once, when a function, the worker or the coordinator lets it go, or at its end.

/** What a data set function returns; anything else is refused. */
type Dataset = Partial<Iterable<unknown> & AsyncIterable<unknown>> | null;

type Iterated = Partial<AsyncIterator<unknown>> | Partial<Iterator<unknown>>;

class WorkerIterator implements AsyncIterableIterator<unknown> {
  readonly #source: Iterated;
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

  private constructor(source: Iterated) {
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

// The iterators of a node's data sets, as the functions of one of its threads see them: each call
// goes to the thread that has the iterator, and its result comes back as a copy.

type Waiting = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};

class SharedIterators {
  readonly #post: (id: number, request: Uint8Array) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

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

export interface ResourceMaker {
  /** Calls the function that makes a data set. It may change the arguments. */
  build(resource: Extract<WorkerResource, { kind: 'dataset' }>): unknown;
  /** Runs `body`, in which `currentCall()` works. */
  asCall<T>(body: () => T): T;
}

export class WorkerResources {
  readonly #maker: ResourceMaker;
  readonly shared: SharedIterators;
  /** By id. A function that uses a rejected one fails with its error. */
  readonly #made = new Map<number, Promise<unknown>>();
  /** The iterators that were made, by id. */
  readonly #iterators = new Map<number, WorkerIterator>();
  /** The last call on each iterator that threads share, by its id. */
  readonly #calls = new Map<number, Promise<unknown>>();

  /** @param post - sends the packed arguments of another thread's `draw` */
  constructor(maker: ResourceMaker, post: (id: number, request: Uint8Array) => void) {
    this.#maker = maker;
    this.shared = new SharedIterators(post);
  }

  /** Makes a resource. Resolves when it is made, or is known to be impossible. */
  async prepare(resource: WorkerResource): Promise<void> {
    const made = this.#make(resource);
    this.#made.set(resource.id, made);
    await made.catch(() => {}); // the functions that use the resource fail with it
  }

  /** The arguments, with this worker's own values in place of PerWorkerValues. */
  async withOwnValues(given: readonly unknown[], perWorker: readonly number[]): Promise<unknown[]> {
    const args = [...given];
    for (let at = 0; at < perWorker.length; at += 2) {
      const id = perWorker[at + 1] as number;
      try {
        args[perWorker[at] as number] = await this.#made.get(id);
      } catch (error) {
        const text = `A per-worker value could not be made: ${namedMessageOf(error)}`;
        throw new ClosureInputError(text, { cause: error });
      }
    }
    return args;
  }

  /**
   * Calls a method of an iterator for another thread, after the calls before it have ended:
   * the iterator need not be one that permits two at once.
   */
  async draw(id: number, method: DrawMethod, value: unknown): Promise<unknown> {
    const iterator = (await this.#made.get(id)) as AsyncIterator<unknown>;
    if (method === 'open') return undefined;
    const call = async (): Promise<unknown> => {
      const result =
        method === 'next' ? await iterator.next(value) : await iterator.return?.(value);
      return result === undefined
        ? { done: true, value }
        : { done: Boolean(result.done), value: result.value };
    };
    const drawn = (this.#calls.get(id) ?? Promise.resolve()).then(call, call);
    this.#calls.set(id, drawn);
    return await drawn;
  }

  /** Nobody will use the resource any more. */
  forget(id: number): void {
    const made = this.#made.get(id);
    this.#made.delete(id);
    this.#calls.delete(id);
    const letGo = async (): Promise<unknown> => {
      const iterator = this.#iterators.get(id);
      this.#iterators.delete(id);
      return await iterator?.return();
    };
    void made?.then(letGo, () => {}).catch(warn);
  }

  /** The worker ends: lets the iterators go. @throws the first error of their `return` */
  async close(): Promise<void> {
    const iterators = [...this.#iterators.values()];
    this.#iterators.clear();
    const ended = await Promise.allSettled(iterators.map((each) => each.return()));
    const failed = ended.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  async #make(resource: WorkerResource): Promise<unknown> {
    if (resource.kind === 'broken') throw decode(resource.record).value;
    if (resource.kind === 'shared') return await this.shared.open(resource.id);
    if (resource.kind === 'dataset') {
      // A function that gives an iterator is called once more for each further one.
      const build = async (): Promise<Dataset> =>
        (await this.#maker.build({ ...resource, args: copyOf(resource.args) })) as Dataset;
      return { build, dataset: await build(), isTaken: false } satisfies Source;
    }
    const source = (await this.#made.get(resource.dataset)) as Source;
    const dataset = source.isTaken ? await source.build() : source.dataset;
    const iterator = this.#maker.asCall(() => WorkerIterator.of(dataset));
    source.isTaken ||= iterator.isOnlyOneOf(dataset);
    this.#iterators.set(resource.id, iterator);
    return iterator;
  }
}

/** What a data set's function has given. */
type Source = {
  readonly build: () => Promise<Dataset>;
  readonly dataset: Dataset;
  /** It is an iterator itself, which an iterator has. */
  isTaken: boolean;
};

/** The function may change its arguments. */
function copyOf(args: PassedArguments): PassedArguments {
  if (args instanceof ArrayBuffer) return args.slice(0);
  if (args instanceof Uint8Array) return new Uint8Array(args);
  return attempt(() => structuredClone(args)) ?? args;
}

function warn(error: unknown): void {
  const text = `return() of an iterator that nobody has any more: ${namedMessageOf(error)}`;
  process.emitWarning(text, { code: 'ALLSTOP_TEARDOWN' });
}
