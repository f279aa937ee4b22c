/** The report of a cluster's `ready()`: types only. ClusterNotReadyError has a report, too. */

/** One task of a cluster: whether it is ready, and if not, the cause and the remedy. */
export type TaskReadiness = {
  job: string;
  task: number;
  address?: string;
  host?: string;
  pid?: number;
  ready: boolean;
  phase: string;
  since: Date;
  cause?: string;
  remedy?: string;
};

export type ReadinessReport = {
  ready: boolean;
  engine: { phase: string; cause?: string; remedy?: string };
  tasks: TaskReadiness[];
};
