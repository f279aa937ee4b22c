/** The options of a pool or cluster and of its methods, and its counts. */

import { type Channel, channel } from 'node:diagnostics_channel';
import { type Checks, checkDuration, invalidType } from '../base/arguments.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import type { ReadinessReport } from '../errors/phases.ts';
import { publish } from '../events/channels.ts';
import { type CoordinatorMessage, log } from '../events/spine.ts';
import { checkResults, countFrom, type Results } from './calls/calls.ts';
import type { FunctionStats, Retry } from './queue/call-rules.ts';
import type { WorkerInfo } from './queue/strategy.ts';
import { aboutOf } from './worker/task-channel.ts';

/** The options of a ClusterCoordinator. */
export type ClusterOptions = {
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
  /** Waiting for room in the queue (`maxQueued`, `maxQueuedBytes`): the pool has more than it can do. */
  waiting: number;
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

/** @throws TypeError */
export function isCoordinator(name: string, value: unknown): void {
  if (!(value instanceof Coordinator)) throw invalidType(name, 'an instance of Coordinator', value);
}

export const CLUSTER_OPTIONS: Checks = {
  maxQueued: countFrom(1),
  maxQueuedBytes: countFrom(1),
  retries: countFrom(0),
  cancelGraceMs: checkDuration,
  coordinator: isCoordinator,
  results: checkResults,
};

// The events of a pool, and the channel `allstop:cluster:worker` that hears of its workers.

/** The events of a ClusterCoordinator, by name: the arguments of their listeners. */
export type ClusterEvents = {
  /** A worker can take functions: a thread, a process or a node; also one that replaces another. */
  workerStarted: [worker: WorkerInfo];
  /**
   * A thread, a process, a thread of a node, or a node has died or is gone, of `error`. Emitted
   * also if it ran nothing; not if the cluster has ended it because of a stop or `close`, nor for a
   * node that leaves when it has ended its functions.
   */
  workerLost: [worker: WorkerInfo, error: Error];
  /** A thread is blocked in native code and cannot be ended; another takes its place. */
  workerStuck: [worker: WorkerInfo];
  /** A function is run again: its worker was lost, or `retryOn` says so. */
  retry: [retry: Retry];
  /** Over NATS: the connection to the servers is lost, of `error`; it is tried again. */
  disconnected: [error: Error];
  /** Over NATS: there is a connection to a server again. */
  reconnected: [];
  /** Nothing is queued or running any more. */
  idle: [];
};

/** On `allstop:cluster:worker`, in the JavaScript thread that made the ClusterCoordinator. */
export type WorkerMessage = CoordinatorMessage & {
  /** As the events `workerStarted`, `workerLost` and `workerStuck` of the ClusterCoordinator. */
  event: 'started' | 'lost' | 'stuck';
  /** The worker that has started, is lost, or is stuck. */
  worker: WorkerInfo;
  /** Why the worker was lost. */
  error?: Error;
};

const WORKER = channel('allstop:cluster:worker') as Channel<unknown, WorkerMessage>;

/** What is emitted. */
export type PoolEvent = {
  [K in keyof ClusterEvents]: [K, ...ClusterEvents[K]];
}[keyof ClusterEvents];

/** @param coordinator the cluster's */
export function publishWorker(coordinator: object, what: PoolEvent): void {
  if (what[0] !== 'workerStarted' && what[0] !== 'workerLost' && what[0] !== 'workerStuck') return;
  const [type, worker, error] = what;
  const event = ({ workerStarted: 'started', workerLost: 'lost', workerStuck: 'stuck' } as const)[
    type
  ];
  const about = aboutOf(coordinator);
  publish(WORKER, () => ({ ...about, event, worker, ...(error !== undefined && { error }) }));
  if (!log.enabled || event === 'lost') return; // the pool has a line for a lost one
  const deed = event === 'started' ? 'has started' : 'is stuck, and was replaced';
  log('%s: %s %s', about.coordinator, worker.name, deed);
}
