/** The hosts of a node's pools: what both have, and that of the data sets' thread. */

import type { Coordinator } from '../../coordinator/coordinator.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { Call, type Work } from '../../pool/queue/call.ts';
import type { Outcome, QueuedCalls } from '../../pool/queue/call-queue.ts';
import type { DrawAnswer, EngineEvent, StrategyHost } from '../../pool/queue/strategy.ts';
import {
  CLAIMS,
  DRAW,
  type Fate,
  type Resource,
  STATE,
  type WorkerResource,
  wasStarted,
} from '../../pool/worker/messages.ts';
import type { ModuleHooks } from '../../pool/worker/module.ts';
import type { Definition, VariableSource } from '../../pool/worker/variables.ts';
import type { WorkerName } from '../../pool/workers/channel.ts';
import { WorkerPool } from '../../pool/workers/worker-pool.ts';
import { encode } from '../../record/encoded-error.ts';

type Given = Pick<StrategyHost, 'coordinator' | 'cancelGraceMs' | 'retries' | 'variables'>;

/** The queue of a WorkerPool on a node: which thread takes a call does not matter here. */
export abstract class NodeHost implements StrategyHost, QueuedCalls<Call> {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  /** The coordinator has decided which node runs a call; here any thread may. */
  readonly line: QueuedCalls<Call>['line'] = { hasPlaced: false, placedOn: [] };
  #line: Call[] = [];

  constructor({ coordinator, cancelGraceMs, retries, variables }: Given) {
    this.coordinator = coordinator;
    this.cancelGraceMs = cancelGraceMs;
    this.retries = retries;
    this.variables = variables;
  }

  // ---------------------------------------------------------------- called by the pool

  take(): Call | undefined {
    // After a stop the coordinator cancels the calls in line.
    return this.coordinator.shouldStop() ? undefined : this.#line.shift();
  }

  get queued(): number {
    return this.#line.length;
  }

  next(): Call | undefined {
    return this.#line[0];
  }

  get queue(): QueuedCalls<Call> {
    return this;
  }

  abstract get resources(): readonly WorkerResource[];
  abstract ended(call: Call, outcome: Outcome, microseconds?: number): void;
  abstract returned(call: Call, fate: Fate, cause?: unknown): void;
  /** (That the node, which is one worker, has started, the coordinator tells itself.) */
  abstract tell(...event: EngineEvent): void;
  abstract failed(error: Error): void;
  overdue(_call: Call): void {}
  progressed(_call: Call, _values: readonly Uint8Array[]): void {}
  changed(): void {}

  // ---------------------------------------------------------------- called by the subclass

  protected enqueue(call: Call): void {
    this.#line.push(call);
  }

  protected putBack(call: Call): void {
    this.#line.unshift(call);
  }

  /** @returns whether it was in line, and is not any more */
  protected withdraw(call: Call): boolean {
    const at = this.#line.indexOf(call);
    if (at !== -1) this.#line.splice(at, 1);
    return at !== -1;
  }
}

// The data sets of a node with several slots: one thread, which runs no functions, makes them
// and their iterators, and the functions of all slots draw from it. So a data set is read once,
// and a function that ends its thread does not end the data sets of the others.
//
// 1. The thread is a WorkerPool of one, which starts with the first data set. A request of a slot
//    is a call whose function is DRAW; this class is the pool's host.
// 2. Each call in `#answers` is answered once: with its result; or, if its thread died while it
//    ran, with an error, since nobody knows whether the iterator has moved. What had not begun
//    waits for the next thread, which makes the data sets anew, from the beginning.

export type SharedDatasetsSettings = ModuleHooks & {
  module: URL;
  task: WorkerName;
  hasModule: () => boolean;
};

/** The session: its functions draw. */
interface DatasetsOwner extends NodeHost {
  readonly made: readonly Resource[];
}

export class SharedDatasets extends NodeHost {
  readonly #owner: DatasetsOwner;
  readonly #settings: SharedDatasetsSettings;
  #pool: WorkerPool | undefined;
  readonly #answers = new Map<Call, DrawAnswer>();
  /** Why there will be no thread any more. */
  #failure: Error | undefined;

  constructor(owner: DatasetsOwner, settings: SharedDatasetsSettings) {
    super(owner);
    this.#owner = owner;
    this.#settings = settings;
  }

  /** Makes what the session has got: a data set, or an iterator of one. */
  add(resource: Resource): void {
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
    this.#pool?.forget(id);
  }

  /** Tells the thread of variables. */
  define(...definitions: Definition[]): void {
    this.#pool?.define(...definitions);
  }

  draw(request: Uint8Array, answer: DrawAnswer): void {
    const own = { bytes: request.length, perWorker: undefined, hasVariables: false, transfer: [] };
    const work: Work = { name: DRAW, args: request, ...own };
    const call = new Call(work);
    this.#answers.set(call, answer);
    if (this.#failure !== undefined) {
      this.#fail(call, this.#failure);
      return;
    }
    this.enqueue(call);
    this.#pool?.wake();
  }

  /** Ends the thread. Resolves when it has ended, or is given up as stuck. */
  async close(): Promise<void> {
    this.failed(new CancelledError('The node has ended its session'));
    await this.#pool?.close();
  }

  // ---------------------------------------------------------------- host of the pool

  get resources(): readonly Resource[] {
    return this.#owner.made;
  }

  ended(call: Call, { state, value }: Outcome): void {
    if (state === 'ready') this.#answer(call, STATE.ready, value as Uint8Array);
    else this.#fail(call, value);
  }

  returned(call: Call, fate: Fate, cause?: unknown): void {
    if (!wasStarted(fate) && this.#failure === undefined) {
      this.putBack(call);
      return;
    }
    const { job, index } = this.#settings.task;
    const text = `The thread that has the data sets of ${job}:${index} ended while it made the next item. They begin anew`;
    this.#fail(call, new UnavailableError(text, { cause }));
  }

  tell(...event: EngineEvent): void {
    this.#owner.tell(...event);
  }

  failed(error: Error): void {
    this.#failure ??= error;
    for (const call of this.#answers.keys()) {
      this.withdraw(call);
      this.#fail(call, this.#failure);
    }
  }

  #fail(call: Call, error: unknown): void {
    this.#answer(call, STATE.failed, encode(error).bytes);
  }

  #answer(call: Call, state: number, bytes: Uint8Array): void {
    const answer = this.#answers.get(call);
    this.#answers.delete(call);
    answer?.(state, bytes);
  }
}
