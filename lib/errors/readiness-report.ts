/** What `ready()` of a cluster waits for, as ClusterNotReadyError reports it. Types only. */

import type { EnginePhase, TaskPhase } from './phases.ts';

/** How a node of a NATS cluster did when it last answered a probe. */
export type NodeHealth = {
  /**
   * From the coordinator to the node and back, in milliseconds, without the time for which the
   * coordinator's own event loop was held up.
   */
  roundTripMs: number;
  /** The longest delay of the node's event loop since the probe before, in milliseconds. */
  loopDelayMs?: number;
  /** The load of its machine: how many threads ran or waited for a processor in the last minute. */
  load?: number;
  /** Of its machine, in bytes. */
  freeMemory?: number;
};

/** One expected task of a cluster, and what keeps it from being ready. */
export type TaskReadiness = {
  job: string;
  task: number;
  address?: string;
  host?: string;
  pid?: number;
  ready: boolean;
  phase: TaskPhase;
  /** When `phase` began. */
  since: Date;
  /** Why the task is not ready; of one that is ready, why its node is slow. */
  cause?: string;
  remedy?: string;
  /** Over NATS, of a node that has answered a probe. */
  health?: NodeHealth;
};

/** What carries functions to the workers, and what keeps it from being ready. */
export type EngineReadiness = { phase: EnginePhase; cause?: string; remedy?: string };

export type ReadinessReport = {
  ready: boolean;
  engine: EngineReadiness;
  tasks: TaskReadiness[];
};
