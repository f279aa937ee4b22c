/** The events of a pool, and the channel `allstop:cluster:worker` that hears of its workers. */

import { type Channel, channel } from 'node:diagnostics_channel';
import { publish } from '../events/channels.ts';
import type { CoordinatorMessage } from '../events/coordinator-event.ts';
import { log } from '../events/spine.ts';
import type { EngineEvent, WorkerInfo } from './queue/strategy.ts';
import { aboutOf } from './worker/task-channel.ts';

/** A function is run again: its worker was lost, or `retryOn` says so. */
export type Retry = {
  /** The name of the function. */
  name: string;
  /** The number of the attempt that follows; at least 2. */
  attempt: number;
  /** Why the worker was lost, or the error of the function. */
  cause: unknown;
};

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

const EVENTS = { workerStarted: 'started', workerLost: 'lost', workerStuck: 'stuck' } as const;

const WORKER = channel('allstop:cluster:worker') as Channel<unknown, WorkerMessage>;

/** @param coordinator the cluster's */
export function publishWorker(
  coordinator: object,
  ...[type, worker, error]: Exclude<EngineEvent, ['disconnected', Error] | ['reconnected']>
): void {
  const event = EVENTS[type];
  publish(WORKER, () => ({
    ...aboutOf(coordinator),
    event,
    worker,
    ...(error !== undefined && { error }),
  }));
  if (!log.enabled || event === 'lost') return; // the pool has a line for a lost one
  const { coordinator: name } = aboutOf(coordinator);
  const deed = event === 'started' ? 'has started' : 'is stuck, and was replaced';
  log("cluster '%s': the worker %s %s", name, worker.name, deed);
}
