/** What each worker has its own of. TensorFlow's PerWorkerDataset and PerWorkerValues. */

/**
 * A value that every worker has its own of. As an argument of `schedule` it becomes that
 * of the worker that runs the function.
 */
export class PerWorkerValues<T> {
  /** For the compiler: what the function gets. */
  declare readonly component: T;
  readonly #id: number;
  readonly #owner: object;

  /** @internal */
  constructor(owner: object, id: number) {
    this.#owner = owner;
    this.#id = id;
  }

  /** The id of such a value of that cluster; undefined: it is none, or another's. */
  static idOf(value: unknown, owner: object): number | undefined {
    if (!(typeof value === 'object' && value !== null && #id in value)) return undefined;
    return value.#owner === owner ? value.#id : undefined;
  }
}

/** A data set of which each worker makes its own, also when it is replaced. */
export class PerWorkerDataset<T> {
  readonly #iterate: () => PerWorkerValues<AsyncIterator<T>>;

  /** @internal `createPerWorkerDataset` makes them. */
  constructor(iterate: () => PerWorkerValues<AsyncIterator<T>>) {
    this.#iterate = iterate;
  }

  /** A new iterator on each worker, from the data set's beginning. */
  iterator(): PerWorkerValues<AsyncIterator<T>> {
    return this.#iterate();
  }
}
