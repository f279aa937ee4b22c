export * from '../public-errors.ts';
export {
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  type ClusterStats,
  type ReadyOptions,
} from './cluster-coordinator.ts';
export { type ClusterJobs, ClusterSpec } from './cluster-spec.ts';
export { type CurrentTask, currentTask } from './current-task.ts';
export type { Fetched } from './fetched.ts';
export { LocalStrategy, type LocalStrategyOptions } from './local/local-strategy.ts';
export { PerWorkerDataset, PerWorkerValues } from './per-worker.ts';
export { type FetchOptions, type RemoteState, RemoteValue } from './remote-value.ts';
export type {
  FunctionNames,
  PerWorkerArgs,
  ScheduleArgs,
  ScheduleOptions,
} from './signatures.ts';
export type { Strategy, WorkerInfo } from './strategy.ts';
export { transfer } from './transfer.ts';
