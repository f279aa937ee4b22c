/** Values of which each worker has its own. TensorFlow's PerWorkerDataset and PerWorkerValues. */

import { illegalConstructor } from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import { NO_PER_WORKER_VALUES } from '../../values/refused-values.ts';

/** A new worker makes the data set before the iterator: it must not be forgotten before that. */
const datasetOf = new WeakMap<object, object>();

/** The first argument of the constructors, which programs do not have. */
const MAKING = Symbol('making what is per worker');

/** Makes the PerWorkerValues with this number, of a data set of the cluster `owner`. */
export let makePerWorkerValues: <T>(
  owner: object,
  id: number,
  dataset: object,
) => PerWorkerValues<T>;

/** Makes the PerWorkerDataset of which `iterate` makes iterators. */
export let makePerWorkerDataset: <T>(iterate: Iterate<T>) => PerWorkerDataset<T>;

type Iterate<T> = (dataset: object) => PerWorkerValues<AsyncIterator<T>>;

/**
 * A value of which every worker has its own. As an argument of `schedule` it is replaced by
 * the value of the worker that runs the function.
 */
export class PerWorkerValues<T> {
  /** For the compiler only: the type that the function receives. */
  declare readonly standsFor: T;
  /** @internal */
  readonly uncloneable: symbol = NO_PER_WORKER_VALUES;
  readonly #id: number;
  readonly #owner: object;

  static {
    makePerWorkerValues = (owner, id, dataset) => new PerWorkerValues(MAKING, owner, id, dataset);
    showAs(PerWorkerValues.prototype, (values) => ({
      facts: ['one for each worker', `number ${values.#id}`],
    }));
  }

  private constructor(making: symbol, owner: object, id: number, dataset: object) {
    if (making !== MAKING) {
      throw illegalConstructor('PerWorkerValues are made by the iterator() of a PerWorkerDataset');
    }
    this.#owner = owner;
    this.#id = id;
    datasetOf.set(this, dataset);
  }

  /** @returns undefined if `value` is not a PerWorkerValues of the cluster `owner` */
  static idOf(value: unknown, owner: object): number | undefined {
    if (!(typeof value === 'object' && value !== null && #id in value)) return undefined;
    return value.#owner === owner ? value.#id : undefined;
  }
}

/**
 * A data set that each worker makes for itself, also a worker that replaces a lost one.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
 *
 * const code = `
 *   export const numbers = () => [1, 2, 3];
 *   export const next = async (iterator) => (await iterator.next()).value;`;
 * const module = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
 * const iterator = cluster.createPerWorkerDataset('numbers').iterator();
 * const first = await cluster.schedule('next', [iterator]); // with the iterator of its worker
 * console.log(await first.fetch()); // 1
 * await cluster.close();
 * ```
 */
export class PerWorkerDataset<T> {
  readonly #iterate: Iterate<T>;

  static {
    makePerWorkerDataset = (iterate) => new PerWorkerDataset(MAKING, iterate);
    showAs(PerWorkerDataset.prototype, (dataset) => ({
      facts: #iterate in dataset ? ['one on each worker'] : [],
    }));
  }

  private constructor(making: symbol, iterate: Iterate<T>) {
    if (making !== MAKING) {
      throw illegalConstructor(
        'a PerWorkerDataset is made by cluster.createPerWorkerDataset(datasetFn, args)',
      );
    }
    this.#iterate = iterate;
  }

  /**
   * Makes a new iterator on each worker, which starts at the beginning of the data set: a function
   * that gives an iterator, as a generator function does, is called again. Its `return()` is called
   * once: at its end, when a function leaves its loop, when the program has let go of what this
   * method returns, or when its worker ends in order.
   *
   * @throws CancelledError, FailedPreconditionError, UnavailableError: as for `schedule`
   */
  iterator(): PerWorkerValues<AsyncIterator<T>> {
    return this.#iterate(this);
  }
}
