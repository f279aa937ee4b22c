/** The strategies of a cluster: those of a pool, which may keep more than calls. */

import type { Engine, Strategy as PoolStrategy } from '../pool/queue/strategy.ts';
import type { CheckpointStore } from './checkpoints/checkpoint-file.ts';
import type { VariableStore } from './variables/variable.ts';

export interface ClusterEngine extends Engine {
  /**
   * The variables, if the engine keeps them. Called once.
   *
   * @param owner - the ClusterCoordinator
   */
  variables?(owner: object): VariableStore;
}

/** Says where workers live. Made by the user, for one ClusterCoordinator. */
export interface Strategy extends PoolStrategy<ClusterEngine> {
  /**
   * Keeps checkpoints in the object store of this name. Left out by a strategy without servers.
   *
   * @internal
   */
  checkpoints?(bucket: string): CheckpointStore;
}
