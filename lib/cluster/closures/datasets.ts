/** What workers make of their own, kept for those that come later. */

import { encode } from '../../record/error-record.ts';
import { type Resource } from '../worker/protocol.ts';
import { type Call, Closure } from './closure.ts';
import { PerWorkerDataset, PerWorkerValues } from './per-worker.ts';

/** Has a worker make something before it does anything else. */
type Prepare = (closure: Closure, worker: number) => void;

export class Datasets {
  readonly #owner: object;
  readonly #prepare: Prepare;
  /** The workers that have begun. */
  readonly #workers: () => readonly number[];
  readonly #resources = new Map<number, Resource>();
  #lastId = 0;
  #defining: Promise<void> = Promise.resolve();
  /** So many are not defined yet. */
  #toDefine = 0;
  /** They are. */
  readonly #changed: () => void;

  constructor(
    owner: object,
    workers: () => readonly number[],
    prepare: Prepare,
    changed: () => void,
  ) {
    this.#owner = owner;
    this.#workers = workers;
    this.#prepare = prepare;
    this.#changed = changed;
  }

  /** Until what was created is known to the workers that there are. */
  get defined(): Promise<void> {
    return this.#defining;
  }

  get isDefining(): boolean {
    return this.#toDefine > 0;
  }

  /** `name`: of the function; what it rejects with is what users of the values fail with. */
  create<T>(name: () => Promise<string>, args: Call['args']): PerWorkerDataset<T> {
    const dataset = this.#define(async (id) => ({
      kind: 'dataset',
      id,
      name: await name(),
      args,
    }));
    return new PerWorkerDataset<T>(() => {
      const iterator = this.#define(async (id) => ({ kind: 'iterator', id, dataset }));
      return new PerWorkerValues<AsyncIterator<T>>(this.#owner, iterator);
    });
  }

  /** The worker is new: it gets all there is. */
  prepareAll(worker: number): void {
    for (const resource of this.#resources.values()) this.#send(resource, worker);
  }

  /** In the order of calls: what an iterator is made of comes before it. */
  #define(make: (id: number) => Promise<Resource>): number {
    const id = ++this.#lastId;
    this.#toDefine += 1;
    this.#defining = this.#defining.then(async () => {
      let resource: Resource;
      try {
        resource = await make(id);
      } catch (error) {
        resource = { kind: 'broken', id, record: encode(error).bytes };
      }
      this.#resources.set(id, resource);
      for (const worker of this.#workers()) this.#send(resource, worker);
      await Promise.resolve(); // the workers have begun with it
      this.#toDefine -= 1;
      this.#changed();
    });
    return id;
  }

  #send(resource: Resource, worker: number): void {
    this.#prepare(new Closure(resource), worker);
  }
}
