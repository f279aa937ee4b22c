/**
 * The data sets and iterators of one worker, made once and kept for the functions that use them.
 *
 * On a node with several slots they are made in one thread, which runs no functions; the
 * functions of the slots draw from it (shared-iterators.ts at their end, `draw` here).
 */

import { messageOf } from '../../../base/thrown-value.ts';
import { ClosureInputError } from '../../../errors/errors.ts';
import { decode } from '../../../record/encoded-error.ts';
import type { DrawMethod, WorkerResource } from '../protocol.ts';
import type { SharedIterators } from './shared-iterators.ts';

export interface ResourceMaker {
  /** Calls the function that makes a data set. */
  build(resource: Extract<WorkerResource, { kind: 'dataset' }>): unknown;
  /** Runs `body`, in which `currentCall()` works. */
  asTask<T>(body: () => T): T;
}

export class WorkerResources {
  readonly #maker: ResourceMaker;
  readonly #shared: SharedIterators;
  /** By id. A function that uses a rejected one fails with its error. */
  readonly #made = new Map<number, Promise<unknown>>();
  /** The last call on each iterator that threads share, by its id. */
  readonly #calls = new Map<number, Promise<unknown>>();

  constructor(maker: ResourceMaker, shared: SharedIterators) {
    this.#maker = maker;
    this.#shared = shared;
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
        throw new ClosureInputError(`A per-worker value could not be made: ${messageOf(error)}`, {
          cause: error,
        });
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

  async #make(resource: WorkerResource): Promise<unknown> {
    if (resource.kind === 'broken') throw decode(resource.record).value;
    if (resource.kind === 'shared') return await this.#shared.open(resource.id);
    if (resource.kind === 'dataset') return await this.#maker.build(resource);
    const dataset = (await this.#made.get(resource.dataset)) as Dataset;
    return this.#maker.asTask(() => iteratorOf(dataset));
  }
}

type Dataset = Partial<Iterable<unknown> & AsyncIterable<unknown>> | null;

/** An async iterator of a data set, which may be iterable or async iterable. */
function iteratorOf(dataset: Dataset): AsyncIterator<unknown> {
  const asynchronous = dataset?.[Symbol.asyncIterator]?.();
  if (asynchronous !== undefined) return asynchronous;
  const iterator = dataset?.[Symbol.iterator]?.();
  if (iterator === undefined)
    throw new TypeError(
      'The data set is not iterable: its function must return an iterable or an async iterable',
    );
  const own: AsyncIterableIterator<unknown> = {
    next: async () => iterator.next(),
    return: async (value) => iterator.return?.(value) ?? { done: true, value },
    [Symbol.asyncIterator]: () => own,
  };
  return own;
}
