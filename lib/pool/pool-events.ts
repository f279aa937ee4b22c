/** The events of a ClusterCoordinator. */

import type { WorkerInfo } from './queue/strategy.ts';

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
