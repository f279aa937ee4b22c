export * from '../errors/public-errors.ts';
export type { WaitOptions } from './call-options.ts';
export { PerWorkerDataset, PerWorkerValues } from './closures/per-worker.ts';
export { type FetchOptions, type RemoteState, RemoteValue } from './closures/remote-value.ts';
export type { RunningTask, Strategy, WorkerInfo } from './closures/strategy.ts';
export {
  type CloseOptions,
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  type ClusterStats,
  type ReadyOptions,
} from './cluster-coordinator.ts';
export type { ClusterEvents, Retry } from './cluster-events.ts';
export { type ClusterJobs, ClusterSpec } from './cluster-spec.ts';
export type { Fetched } from './fetch-all.ts';
export type { FunctionStats } from './function-stats.ts';
export type { Percentiles } from './histogram.ts';
export {
  type ElasticWorkers,
  LocalStrategy,
  type LocalStrategyOptions,
} from './local/local-strategy.ts';
export type { LocalWorkerOptions } from './local/worker-options.ts';
export type { Recycle } from './pool/channel.ts';
export type {
  FunctionNames,
  PerWorkerArgs,
  ScheduleArgs,
  ScheduleOptions,
} from './signatures.ts';
export { type CurrentTask, currentTask } from './worker/current-task.ts';
export { transfer } from './worker/transfer.ts';
