/** The options of a pool or cluster and of its methods, and its counts. */

import { checkDuration, checkOptions, invalidType } from '../base/arguments.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import type { ReadinessReport } from '../errors/phases.ts';
import { checkCount } from './calls/call-options.ts';
import { checkResults, type Results } from './calls/kept-results.ts';
import type { FunctionStats } from './function-stats.ts';
import { RETRIES } from './worker/protocol.ts';

/** The options of a ClusterCoordinator. */
export type ClusterCoordinatorOptions = {
  /** How many calls may be queued; `schedule` waits for room. Default: 262,144. */
  maxQueued?: number | undefined;
  /**
   * How many bytes the arguments of queued calls may take; `schedule` waits for room. A single
   * call is queued however large it is. What is shared, and not copied, does not count. Default:
   * 1 GiB (1,073,741,824).
   */
  maxQueuedBytes?: number | undefined;
  /**
   * A coordinator whose stop stops this cluster. A stop of the cluster, or `close`, does not stop
   * it. By default no other coordinator stops the cluster.
   */
  coordinator?: Coordinator | undefined;
  /**
   * How often a function is run again after the death of a worker that ran it, and that of a data
   * set on each worker. Default: 3.
   */
  retries?: number | undefined;
  /**
   * Milliseconds that a cancelled function may go on (default 5,000); then its worker is replaced.
   */
  cancelGraceMs?: number | undefined;
  /**
   * Where the results of calls with a `key` are kept: a FileResults, or a NatsResults of
   * `allstop/nats`. `close` ends what this cluster has open there. By default nowhere: a call with
   * a `key` is refused.
   */
  results?: Results | undefined;
};

/** Counts of functions since the cluster was made. */
export type ClusterStats = {
  /** Waiting for a worker. */
  queued: number;
  /** Waiting for RemoteValues among their arguments. */
  held: number;
  /** Taken by a worker and not ended. */
  inFlight: number;
  /** Ended with a result. */
  completed: number;
  /** Ended with an error. */
  failed: number;
  /** Cancelled before their end. */
  cancelled: number;
  /** How often a function was run again: its worker was lost, or `retryOn` said so. */
  retried: number;
  /** About how many bytes the arguments of the queued functions take. */
  queuedBytes: number;
  /** By the name of the function. */
  functions: Record<string, FunctionStats>;
  /** The share of the workers' time in which functions ran (0 to 1). */
  utilization: number;
  /** Counters of the strategy: `restarts` of workers; on NATS also nodes, connections and more. */
  engine: Record<string, number>;
};

/** The options of `close`. */
export type CloseOptions = {
  /** Milliseconds that what was called before `close` has to end. Default: 0. */
  drainMs?: number | undefined;
};

/** The options of `ready`. */
export type ReadyOptions = {
  /** Milliseconds after which `ready` rejects with a ClusterNotReadyError. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** When it aborts, `ready` rejects with the signal's reason. Default: no signal. */
  signal?: AbortSignal | undefined;
  /**
   * Called with the report when `ready` begins to wait and after each change, until it
   * settles. If it throws, `ready` rejects with that error. By default nothing is called.
   */
  onProgress?: ((report: ReadinessReport) => void) | undefined;
};

const MAX_QUEUED = 262_144; // as in TensorFlow
const MAX_QUEUED_BYTES = 2 ** 30;
const CANCEL_GRACE_MS = 5_000;

export const CLUSTER_OPTIONS: readonly string[] = [
  'maxQueued',
  'maxQueuedBytes',
  'retries',
  'cancelGraceMs',
  'coordinator',
  'results',
] satisfies (keyof ClusterCoordinatorOptions)[];

/** The options with their defaults. */
type Checked = {
  maxQueued: number;
  maxQueuedBytes: number;
  retries: number;
  cancelGraceMs: number;
  /** The option `coordinator`. */
  parent: Coordinator | undefined;
  results: Results | undefined;
};

/** @throws TypeError, RangeError */
export function checkClusterOptions(options: ClusterCoordinatorOptions | undefined): Checked {
  const given = checkOptions('options', options, CLUSTER_OPTIONS) as ClusterCoordinatorOptions;
  const { maxQueued = MAX_QUEUED, maxQueuedBytes = MAX_QUEUED_BYTES, retries = RETRIES } = given;
  const { cancelGraceMs = CANCEL_GRACE_MS, coordinator: parent, results } = given;
  checkCount('options.maxQueued', maxQueued, 1);
  checkCount('options.maxQueuedBytes', maxQueuedBytes, 1);
  checkCount('options.retries', retries, 0);
  checkDuration('options.cancelGraceMs', cancelGraceMs);
  if (parent !== undefined && !(parent instanceof Coordinator)) {
    throw invalidType('options.coordinator', 'an instance of Coordinator', parent);
  }
  checkResults(results);
  return { maxQueued, maxQueuedBytes, retries, cancelGraceMs, parent, results };
}
