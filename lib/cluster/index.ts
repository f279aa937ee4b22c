export * from '../errors/public-errors.ts';
export type { WaitOptions } from './calls/call-options.ts';
export type {
  FunctionNames,
  ItemOf,
  Items,
  MapOptions,
  Mapped,
  MapResults,
  OnError,
  PerWorkerArgs,
  ScheduleArgs,
  ScheduleOptions,
  SettledItem,
} from './calls/signatures.ts';
export type { Priority } from './closures/lines/closure-lines.ts';
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
export { LocalStrategy, type LocalStrategyOptions } from './local/local-strategy.ts';
export { type CurrentTask, currentTask } from './worker/current-task.ts';
export { transfer } from './worker/transfer.ts';
