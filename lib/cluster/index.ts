/**
 * Functions on worker threads and worker processes, variables, and checkpoints.
 *
 * @module allstop/cluster
 */

export * from '../errors/public-errors.ts';
export type { Results, WaitOptions } from '../pool/calls/calls.ts';
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
  StandsFor,
} from '../pool/calls/signatures.ts';
export type { LocalWorkerOptions } from '../pool/local/local-strategy.ts';
export {
  type ElasticWorkers,
  LocalStrategy,
  type LocalStrategyOptions,
} from '../pool/local/local-strategy.ts';
export type {
  CloseOptions,
  ClusterEvents,
  ClusterOptions,
  ClusterStats,
  ReadyOptions,
  WorkerMessage,
} from '../pool/pool-options.ts';
export type { Priority } from '../pool/queue/call-lines.ts';
export type { FunctionStats, Percentiles, Retry } from '../pool/queue/call-rules.ts';
export type { RunningCall, WorkerInfo } from '../pool/queue/strategy.ts';
export type { TaskMessage } from '../pool/worker/task-channel.ts';
export type { Recycle } from '../pool/workers/channel.ts';
export { type Movable, transfer } from '../values/to-thread.ts';
export type { Fetched } from './calls/remote-value.ts';
export { type FetchOptions, type RemoteState, RemoteValue } from './calls/remote-value.ts';
export { Checkpoint, type CheckpointOptions } from './checkpoint.ts';
export { ClusterCoordinator } from './cluster-coordinator.ts';
export { type ClusterJobs, ClusterSpec } from './cluster-spec.ts';
export type { Strategy } from './cluster-strategy.ts';
export { type CurrentCall, currentCall } from './current-call.ts';
export { PerWorkerDataset, PerWorkerValues } from './datasets/datasets.ts';
export { FileResults } from './results/file-results.ts';
export { Variable, type VariableOptions, type VariableValue } from './variables/variable.ts';
