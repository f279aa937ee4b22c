/**
 * The data sets of a node with several slots: one thread, which runs no functions, makes them
 * and their iterators, and the functions of all slots draw from it. So a data set is read once,
 * and a function that ends its thread does not end the data sets of the others.
 *
 * 1. The thread is a WorkerPool of one, which starts with the first data set. A request of a slot
 *    is a closure whose function is DRAW; this class is the pool's host.
 * 2. Each closure in `#answers` is answered once: with its result; or, if its thread died while it
 *    ran, with an error, since nobody knows whether the iterator has moved. What had not begun
 *    waits for the next thread, which makes the data sets anew, from the beginning.
 */

import type { Definition } from '../../cluster/variables/variable.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { type Call, Closure } from '../../pool/queue/closure.ts';
import type { Outcome } from '../../pool/queue/life.ts';
import type { DrawAnswer, EngineEvent } from '../../pool/queue/strategy.ts';
import type { ModuleHooks } from '../../pool/worker/module-options.ts';
import { CLAIMS, DRAW, type Fate, type Resource, STATE } from '../../pool/worker/protocol.ts';
import type { WorkerName } from '../../pool/workers/channel.ts';
import { WorkerPool } from '../../pool/workers/worker-pool.ts';
import { encode } from '../../record/encoded-error.ts';
import { NodeHost } from './node-host.ts';

export type SharedDatasetsSettings = ModuleHooks & {
  module: URL;
  task: WorkerName;
  hasModule: () => boolean;
};

export class SharedDatasets extends NodeHost {
  readonly #owner: NodeHost;
  readonly #settings: SharedDatasetsSettings;
  #pool: WorkerPool | undefined;
  readonly #answers = new Map<Closure, DrawAnswer>();
  /** Why there will be no thread any more. */
  #failure: Error | undefined;

  constructor(owner: NodeHost, settings: SharedDatasetsSettings) {
    super(owner);
    this.#owner = owner;
    this.#settings = settings;
  }

  /** Makes a data set, or an iterator of one. */
  add(resource: Resource): void {
    this.addResource(resource);
    this.#pool ??= new WorkerPool(this, {
      ...this.#settings,
      workers: 1,
      concurrency: CLAIMS, // a data set that takes its time holds up no other
      isolation: 'thread',
      hasModule: () => this.#hasModule(),
    });
    this.#pool.prepare(resource);
  }

  /** Without the module no thread will answer. */
  #hasModule(): boolean {
    if (this.#settings.hasModule()) return true;
    this.failed(new UnavailableError('The module file of the data sets has changed'));
    return false;
  }

  forget(id: number): void {
    this.removeResource(id);
    this.#pool?.forget(id);
  }

  /** Tells the thread of variables. */
  define(...definitions: Definition[]): void {
    this.#pool?.define(...definitions);
  }

  draw(request: Uint8Array, answer: DrawAnswer): void {
    const own = { bytes: request.length, perWorker: undefined, hasVariables: false, transfer: [] };
    const call: Call = { name: DRAW, args: request, ...own };
    const closure = new Closure(call);
    this.#answers.set(closure, answer);
    if (this.#failure !== undefined) {
      this.#fail(closure, this.#failure);
      return;
    }
    this.enqueue(closure);
    this.#pool?.wake();
  }

  /** Ends the thread. Resolves when it has ended, or is given up as stuck. */
  async close(): Promise<void> {
    this.failed(new CancelledError('The node has ended its session'));
    await this.#pool?.close();
  }

  // ---------------------------------------------------------------- host of the pool

  ended(closure: Closure, { state, value }: Outcome): void {
    if (state === 'ready') this.#answer(closure, STATE.ready, value as Uint8Array);
    else this.#fail(closure, value);
  }

  returned(closure: Closure, fate: Fate, cause?: unknown): void {
    if (fate === 'sent' && this.#failure === undefined) {
      this.putBack(closure);
      return;
    }
    const { job, index } = this.#settings.task;
    const text = `The thread that has the data sets of ${job}:${index} ended while it made the next item. They begin anew`;
    this.#fail(closure, new UnavailableError(text, { cause }));
  }

  tell(...event: EngineEvent): void {
    this.#owner.tell(...event);
  }

  failed(error: Error): void {
    this.#failure ??= error;
    for (const closure of this.#answers.keys()) {
      this.withdraw(closure);
      this.#fail(closure, this.#failure);
    }
  }

  #fail(closure: Closure, error: unknown): void {
    this.#answer(closure, STATE.failed, encode(error).bytes);
  }

  #answer(closure: Closure, state: number, bytes: Uint8Array): void {
    const answer = this.#answers.get(closure);
    this.#answers.delete(closure);
    answer?.(state, bytes);
  }
}
