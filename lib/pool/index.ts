/**
 * A pool of worker threads or worker processes, whose functions are called by name.
 *
 * @module allstop/pool
 */

export * from '../errors/public-errors.ts';
export { type Movable, transfer } from '../values/to-thread.ts';
export type { Results } from './calls/calls.ts';
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
export type {
  ElasticWorkers,
  LocalStrategyOptions,
  LocalWorkerOptions,
} from './local/local-strategy.ts';
export type {
  CloseOptions,
  ClusterEvents,
  ClusterOptions,
  ClusterStats,
  ReadyOptions,
} from './pool-options.ts';
export type { Priority } from './queue/call-lines.ts';
export type { FunctionStats, Percentiles, Retry } from './queue/call-rules.ts';
export type { RunningCall, WorkerInfo } from './queue/strategy.ts';
export type { CurrentCall } from './worker/call-store.ts';
export { currentCall } from './worker/current-call.ts';
export type { Recycle } from './workers/channel.ts';
