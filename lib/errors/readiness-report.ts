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
  /** The job of the task: 'worker', or another of the ClusterSpec. */
  job: string;
  /** The index of the task in its job, from 0. */
  task: number;
  /** The address of the task in the ClusterSpec. Left out if the spec has none. */
  address?: string;
  /** The name of the worker's machine. Left out while no worker has had the task. */
  host?: string;
  /** The pid of the worker, or of the program if the worker is a thread. Left out as `host`. */
  pid?: number;
  /** Whether the task's worker takes functions. */
  ready: boolean;
  /** How far the task is. */
  phase: TaskPhase;
  /** When `phase` began. */
  since: Date;
  /** Why the task is not ready; of one that is ready, why its node is slow. */
  cause?: string;
  /** What an operator can do about the cause. */
  remedy?: string;
  /** Over NATS, of a node that has answered a probe. */
  health?: NodeHealth;
};

/** What carries functions to the workers, and what keeps it from being ready. */
export type EngineReadiness = {
  /** How far the engine is. */
  phase: EnginePhase;
  /** Why the engine is not ready. */
  cause?: string;
  /** What an operator can do about the cause. */
  remedy?: string;
};

/** How far a cluster is, for `ready({ onProgress })` and in a ClusterNotReadyError. */
export type ReadinessReport = {
  /** Whether the cluster is ready: then `ready` resolves. */
  ready: boolean;
  /** What carries functions to the workers. */
  engine: EngineReadiness;
  /** The tasks that the cluster waits for, and those that workers have. */
  tasks: TaskReadiness[];
};
