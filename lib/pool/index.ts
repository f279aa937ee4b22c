/**
 * A pool of worker threads or worker processes, whose functions are called by name.
 *
 * @module allstop/pool
 */

export * from '../errors/public-errors.ts';
export type { Results } from './calls/kept-results.ts';
export type {
  CallOptions,
  FunctionNames,
  ItemOf,
  Items,
  MapOptions,
  Mapped,
  MapResults,
  OnError,
  SettledItem,
  StandsFor,
} from './calls/signatures.ts';
export { createPool, type Pool, type PoolOptions } from './create-pool.ts';
export type { FunctionStats, Percentiles } from './function-stats.ts';
export type { ElasticWorkers, LocalStrategyOptions } from './local/local-strategy.ts';
export type { LocalWorkerOptions } from './local/worker-options.ts';
export type { ClusterEvents, Retry } from './pool-events.ts';
export type {
  CloseOptions,
  ClusterCoordinatorOptions,
  ClusterStats,
  ReadyOptions,
} from './pool-options.ts';
export type { Priority } from './queue/lines/call-lines.ts';
export type { RunningCall, WorkerInfo } from './queue/strategy.ts';
export type { CurrentCall } from './worker/call-store.ts';
export { currentCall } from './worker/current-call.ts';
export { type Movable, transfer } from './worker/transfer.ts';
export type { Recycle } from './workers/channel.ts';
