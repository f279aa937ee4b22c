/** The queue of a WorkerPool on a node: which thread takes a closure does not matter here. */

import type { VariableSource } from '../../cluster/variables/variable-store.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { Closure, type ClosureOutcome } from '../../pool/queue/closure.ts';
import type { StrategyHost, WorkerInfo } from '../../pool/queue/strategy.ts';
import type { Fate, Resource, WorkerResource } from '../../pool/worker/protocol.ts';

export type NodeHostOptions = Pick<
  StrategyHost,
  'coordinator' | 'cancelGraceMs' | 'retries' | 'variables'
>;

export abstract class NodeHost implements StrategyHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  /** The coordinator has decided which node runs a closure; here any thread may. */
  readonly hasPlaced = false;
  readonly placedOn: readonly number[] = [];
  #line: Closure[] = [];
  #resources: Resource[] = [];
  /** By worker: what it has to make before it takes closures. */
  readonly #tagged = new Map<number, Closure[]>();

  constructor({ coordinator, cancelGraceMs, retries, variables }: NodeHostOptions) {
    this.coordinator = coordinator;
    this.cancelGraceMs = cancelGraceMs;
    this.retries = retries;
    this.variables = variables;
  }

  // ---------------------------------------------------------------- called by the pool

  take(): Closure | undefined {
    // After a stop the coordinator cancels the closures in line.
    return this.coordinator.shouldStop() ? undefined : this.#line.shift();
  }

  get waiting(): number {
    return this.#line.length;
  }

  /** The coordinator sends a suspect alone. */
  isSuspectNext(): boolean {
    return false;
  }

  takeTagged(worker: number): Closure | undefined {
    return this.#tagged.get(worker)?.shift();
  }

  hasTagged(): boolean {
    return [...this.#tagged.values()].some((closures) => closures.length > 0);
  }

  prepare(worker: number): void {
    this.#tagged.set(
      worker,
      this.#resources.map((resource) => new Closure(this.toMake(resource))),
    );
  }

  abstract ended(closure: Closure, outcome: ClosureOutcome, microseconds?: number): void;
  abstract returned(closure: Closure, fate: Fate, cause?: unknown): void;
  abstract workerLost(worker: WorkerInfo, error: Error): void;
  abstract workerStuck(worker: WorkerInfo): void;
  abstract failed(error: Error): void;
  overdue(_closure: Closure): void {}
  progressed(_closure: Closure, _values: readonly Uint8Array[]): void {}
  workerStarted(): void {}
  changed(): void {}

  // ---------------------------------------------------------------- called by the subclass

  /** What a thread is sent to make, for a resource. */
  protected toMake(resource: Resource): WorkerResource {
    return resource;
  }

  protected enqueue(closure: Closure): void {
    this.#line.push(closure);
  }

  protected putBack(closure: Closure): void {
    this.#line.unshift(closure);
  }

  /** @returns whether it was in line, and is not any more */
  protected withdraw(closure: Closure): boolean {
    const at = this.#line.indexOf(closure);
    if (at !== -1) this.#line.splice(at, 1);
    return at !== -1;
  }

  protected get resources(): readonly Resource[] {
    return this.#resources;
  }

  /** `workers`: those that have to make the resource; workers that start later make it, too. */
  protected addResource(resource: Resource, workers: readonly number[]): void {
    this.#resources.push(resource);
    for (const worker of workers) {
      this.#tagged.get(worker)?.push(new Closure(this.toMake(resource)));
    }
  }

  protected removeResource(id: number): void {
    this.#resources = this.#resources.filter((each) => each.id !== id);
  }
}
