/** What `ready()` of a cluster waits for, as ClusterNotReadyError reports it. Types only. */

import type { EnginePhase, TaskPhase } from './phases.ts';

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
  cause?: string;
  remedy?: string;
};

/** What carries functions to the workers, and what keeps it from being ready. */
export type EngineReadiness = { phase: EnginePhase; cause?: string; remedy?: string };

export type ReadinessReport = {
  ready: boolean;
  engine: EngineReadiness;
  tasks: TaskReadiness[];
};
