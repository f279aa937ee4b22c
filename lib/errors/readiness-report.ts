/** What `ready()` of a cluster waits for: types only, which the errors need, too. */

/** One expected task of a cluster, and what keeps it from being ready. */
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
