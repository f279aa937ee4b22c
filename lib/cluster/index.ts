export * from '../errors/public-errors.ts';
export { PerWorkerDataset, PerWorkerValues } from './closures/per-worker.ts';
export { type FetchOptions, type RemoteState, RemoteValue } from './closures/remote-value.ts';
export type { Strategy, WorkerInfo } from './closures/strategy.ts';
export {
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  type ClusterStats,
  type ReadyOptions,
} from './cluster-coordinator.ts';
export { type ClusterJobs, ClusterSpec } from './cluster-spec.ts';
export type { Fetched } from './fetch-all.ts';
export { LocalStrategy, type LocalStrategyOptions } from './local/local-strategy.ts';
export type {
  FunctionNames,
  PerWorkerArgs,
  ScheduleArgs,
  ScheduleOptions,
} from './signatures.ts';
export { type CurrentTask, currentTask } from './worker/current-task.ts';
export { transfer } from './worker/transfer.ts';
