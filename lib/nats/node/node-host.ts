/** The queue of a WorkerPool on a node: which thread takes a call does not matter here. */

import type { Coordinator } from '../../coordinator/coordinator.ts';
import type { Call } from '../../pool/queue/call.ts';
import type { Outcome, QueuedCalls } from '../../pool/queue/call-queue.ts';
import type { EngineEvent, StrategyHost } from '../../pool/queue/strategy.ts';
import type { Fate, WorkerResource } from '../../pool/worker/messages.ts';
import type { VariableSource } from '../../pool/worker/variables.ts';

export type NodeHostOptions = Pick<
  StrategyHost,
  'coordinator' | 'cancelGraceMs' | 'retries' | 'variables'
>;

export abstract class NodeHost implements StrategyHost, QueuedCalls<Call> {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly variables: VariableSource;
  /** The coordinator has decided which node runs a call; here any thread may. */
  readonly line: QueuedCalls<Call>['line'] = { hasPlaced: false, placedOn: [] };
  #line: Call[] = [];

  constructor({ coordinator, cancelGraceMs, retries, variables }: NodeHostOptions) {
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
