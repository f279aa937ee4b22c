/**
 * Data sets and iterators that every worker makes for itself, kept for workers that start later.
 */

import type { Work } from '../../pool/queue/call.ts';
import type { End } from '../../pool/queue/call-queue.ts';
import type { Resource } from '../../pool/worker/protocol.ts';
import { encode } from '../../record/encoded-error.ts';
import { makePerWorkerDataset, makePerWorkerValues, type PerWorkerDataset } from './per-worker.ts';

/** An iterable, an async iterable, or a promise of one. */
export type DatasetOf<T> =
  | Iterable<T>
  | AsyncIterable<T>
  | PromiseLike<Iterable<T> | AsyncIterable<T>>;

export interface DatasetsListener {
  /** `Engine.prepare` */
  prepare(resource: Resource): void;
  /** Why calls are refused; undefined while they are taken. */
  end(): End | undefined;
  /** The workers were sent a resource. */
  onDefined(): void;
  /** Nobody has a resource any more: the workers let it go. */
  forget(id: number): void;
}

export class Datasets {
  readonly #owner: object;
  readonly #listener: DatasetsListener;
  readonly #resources = new Map<number, Resource>();
  /** The ids of data sets and iterators that the program, or a call, has. */
  readonly #held = new Set<number>();
  readonly #holders = new FinalizationRegistry<number>((id) => {
    this.#held.delete(id);
    if (this.#resources.delete(id)) this.#listener.forget(id);
  });
  #lastId = 0;
  #defining: Promise<void> = Promise.resolve();
  /** The number of resources that the workers were not sent yet. */
  #toDefine = 0;

  /** @param owner - the cluster, which alone can use the PerWorkerValues */
  constructor(owner: object, listener: DatasetsListener) {
    this.#owner = owner;
    this.#listener = listener;
  }

  /** Resolves when the workers were sent all resources that exist now. */
  get defined(): Promise<void> {
    return this.#defining;
  }

  get isDefining(): boolean {
    return this.#toDefine > 0;
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
    return this.#resources.values();
  }

  /** @throws the error with which the cluster refuses calls */
  #checkOpen(): void {
    const end = this.#listener.end();
    if (end !== undefined) throw end.refusal;
  }

  /** Resources are sent in the order of calls: an iterator comes after its data set. */
  #define(make: (id: number) => Promise<Resource>): number {
    const id = ++this.#lastId;
    this.#held.add(id);
    this.#toDefine += 1;
    this.#defining = this.#defining.then(async () => {
      let resource: Resource;
      try {
        resource = await make(id);
      } catch (error) {
        resource = { kind: 'broken', id, record: encode(error).bytes };
      }
      if (this.#held.has(id)) {
        this.#resources.set(id, resource);
        this.#listener.prepare(resource);
      }
      this.#toDefine -= 1;
      this.#listener.onDefined();
    });
    return id;
  }
}
