/**
 * Functions on worker threads and worker processes, variables, and checkpoints.
 *
 * @module allstop/cluster
 */

export * from '../errors/public-errors.ts';
export type { WaitOptions } from '../pool/calls/call-options.ts';
export type {
  CallOptions,
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
} from '../pool/calls/signatures.ts';
export {
  type ElasticWorkers,
  LocalStrategy,
  type LocalStrategyOptions,
} from '../pool/local/local-strategy.ts';
export type { LocalWorkerOptions } from '../pool/local/worker-options.ts';
export type { Priority } from '../pool/queue/lines/closure-lines.ts';
export { PerWorkerDataset, PerWorkerValues } from '../pool/queue/per-worker.ts';
export { type FetchOptions, type RemoteState, RemoteValue } from '../pool/queue/remote-value.ts';
export type { RunningCall, Strategy, WorkerInfo } from '../pool/queue/strategy.ts';
export type { CurrentCall } from '../pool/worker/call-store.ts';
export { currentCall } from '../pool/worker/current-call.ts';
export type { TaskMessage } from '../pool/worker/task-channel.ts';
export { type Movable, transfer } from '../pool/worker/transfer.ts';
export type { Recycle } from '../pool/workers/channel.ts';
export { Checkpoint, type CheckpointOptions } from './checkpoint.ts';
export { ClusterCoordinator } from './cluster-coordinator.ts';
export type { ClusterEvents, Retry } from './cluster-events.ts';
export type {
  CloseOptions,
  ClusterCoordinatorOptions,
  ClusterStats,
  ReadyOptions,
} from './cluster-options.ts';
export { type ClusterJobs, ClusterSpec } from './cluster-spec.ts';
export type { Fetched } from './fetch-all.ts';
export type { FunctionStats } from './function-stats.ts';
export type { Percentiles } from './histogram.ts';
export { FileResults } from './results/file-results.ts';
export type { Results } from './results/result-store.ts';
export { Variable, type VariableValue } from './variables/variable.ts';
export type { VariableOptions } from './variables/variable-options.ts';
export type { WorkerMessage } from './worker-channel.ts';
