/**
 * Data sets and iterators that every worker makes for itself, kept for workers that start later.
 */

import { illegalConstructor } from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import type { Work } from '../../pool/queue/call.ts';
import type { End } from '../../pool/queue/call-queue.ts';
import type { ChangeListeners } from '../../pool/queue/readiness.ts';
import type { Engine } from '../../pool/queue/strategy.ts';
import type { Resource } from '../../pool/worker/messages.ts';
import { encode } from '../../record/encoded-error.ts';
import { NO_PER_WORKER_VALUES } from '../../values/lost-values.ts';

// Values of which each worker has its own. TensorFlow's PerWorkerDataset and PerWorkerValues.

/** A new worker makes the data set before the iterator: it must not be forgotten before that. */
const datasetOf = new WeakMap<object, object>();

/** The first argument of the constructors, which programs do not have. */
const MAKING = Symbol('making what is per worker');

/** Makes the PerWorkerValues with this number, of a data set of the cluster `owner`. */
let makePerWorkerValues: <T>(owner: object, id: number, dataset: object) => PerWorkerValues<T>;

/** Makes the PerWorkerDataset of which `iterate` makes iterators. */
let makePerWorkerDataset: <T>(iterate: Iterate<T>) => PerWorkerDataset<T>;

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

/** An iterable, an async iterable, or a promise of one. */
export type DatasetOf<T> =
  | Iterable<T>
  | AsyncIterable<T>
  | PromiseLike<Iterable<T> | AsyncIterable<T>>;

/** The pool. */
export interface DatasetsHost {
  readonly engine: Pick<Engine, 'prepare' | 'forget'>;
  /** Why calls are refused; undefined while they are taken. */
  readonly end: End | undefined;
  readonly changes: Pick<ChangeListeners, 'notify'>;
}

export class Datasets {
  readonly #owner: object;
  readonly #host: DatasetsHost;
  /**
   * The data sets and iterators that the program, or a call, has; undefined: the workers were not
   * sent it yet. Nobody has it any more: they let it go.
   */
  readonly #resources = new Map<number, Resource | undefined>();
  readonly #holders = new FinalizationRegistry<number>((id) => {
    const resource = this.#resources.get(id);
    this.#resources.delete(id);
    if (resource !== undefined) this.#host.engine.forget(id);
  });
  #lastId = 0;
  #defining: Promise<void> = Promise.resolve();

  /** @param owner - the cluster, which alone can use the PerWorkerValues */
  constructor(owner: object, host: DatasetsHost) {
    this.#owner = owner;
    this.#host = host;
  }

  /** Resolves when the workers were sent all resources that exist now. */
  get defined(): Promise<void> {
    return this.#defining;
  }

  get isDefining(): boolean {
    return [...this.#resources.values()].includes(undefined);
  }

  /**
   * Throws the error of a cluster that takes no calls, as does `iterator()` of what is returned.
   *
   * @param name - resolves to the name of the data set function; if it rejects, the functions that
   *   use the values fail with its error
   */
  create<T>(name: () => Promise<string>, work: Work): PerWorkerDataset<T> {
    this.#checkOpen();
    const { args, hasVariables } = work.take?.() ?? work;
    const dataset = this.#define(async (id) => ({
      kind: 'dataset',
      id,
      name: await name(),
      args,
      hasVariables,
    }));
    const made = makePerWorkerDataset<T>((holder) => {
      this.#checkOpen();
      const iterator = this.#define(async (id) => ({ kind: 'iterator', id, dataset }));
      const values = makePerWorkerValues<AsyncIterator<T>>(this.#owner, iterator, holder);
      this.#holders.register(values, iterator);
      return values;
    });
    this.#holders.register(made, dataset);
    return made;
  }

  /** What a new worker has to make, in order. */
  get resources(): Iterable<Resource> {
    return [...this.#resources.values()].filter((resource) => resource !== undefined);
  }

  /** @throws the error with which the cluster refuses calls */
  #checkOpen(): void {
    const { end } = this.#host;
    if (end !== undefined) throw end.refusal;
  }

  /** Resources are sent in the order of calls: an iterator comes after its data set. */
  #define(make: (id: number) => Promise<Resource>): number {
    const id = ++this.#lastId;
    this.#resources.set(id, undefined);
    this.#defining = this.#defining.then(async () => {
      let resource: Resource;
      try {
        resource = await make(id);
      } catch (error) {
        resource = { kind: 'broken', id, record: encode(error).bytes };
      }
      if (this.#resources.has(id)) {
        this.#resources.set(id, resource);
        this.#host.engine.prepare(resource);
      }
      this.#host.changes.notify();
    });
    return id;
  }
}
