/** What a cluster has beside its pool: scheduled calls, variables, data sets. */

import type { CallsHost } from '../pool/calls/calls.ts';
import type { PoolCore, PoolExtension } from '../pool/pool-core.ts';
import type { Call } from '../pool/queue/call.ts';
import type { Resource } from '../pool/worker/protocol.ts';
import { CallGroup } from './calls/call-group.ts';
import { ClusterCalls } from './calls/cluster-calls.ts';
import type { ClusterEngine } from './cluster-strategy.ts';
import { Datasets } from './datasets/datasets.ts';
import { ClusterVariables } from './variables/cluster-variables.ts';
import { type VariableStore, variablesOf } from './variables/variable-store.ts';

export class ClusterParts implements PoolExtension<ClusterEngine> {
  readonly core: PoolCore;
  readonly group: CallGroup<Call>;
  readonly datasets: Datasets;
  /** Those whose values are in this process. */
  readonly variables: ClusterVariables;
  readonly #cluster: object;
  #calls: ClusterCalls | undefined;
  #store: VariableStore;

  /** @param cluster - the ClusterCoordinator */
  constructor(core: PoolCore, cluster: object) {
    this.core = core;
    this.#cluster = cluster;
    this.group = new CallGroup(core.queue, (call, reason) =>
      core.engine.cancel(call, { reason, replace: false }),
    );
    this.datasets = new Datasets(cluster, {
      prepare: (resource) => core.engine.prepare(resource),
      end: () => core.end,
      onDefined: () => core.changes.notify(),
      forget: (id) => core.engine.forget(id),
    });
    this.variables = new ClusterVariables(cluster, () => core.engine);
    this.#store = this.variables;
  }

  get calls(): ClusterCalls {
    return this.#calls as ClusterCalls;
  }

  /** Where the values are. */
  get store(): VariableStore {
    return this.#store;
  }

  get resources(): Iterable<Resource> {
    return this.datasets.resources;
  }

  get isDefining(): boolean {
    return this.datasets.isDefining;
  }

  get waiting(): Call[] {
    return this.group.waiting;
  }

  makeCalls(host: CallsHost): ClusterCalls {
    this.#calls = new ClusterCalls(host, this.#cluster, this.group, this.datasets);
    return this.#calls;
  }

  connected(engine: ClusterEngine): void {
    this.#store = engine.variables?.(this.#cluster) ?? this.variables;
    variablesOf.set(this.#cluster, this.#store);
  }

  left(call: Call): void {
    this.#store.forget(call.id);
    this.group.left(call);
  }

  close(): void {
    this.#store.close();
  }
}
