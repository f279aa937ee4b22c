/** The channel `allstop:cluster:worker`: workers that start, are lost or stuck. */

import { type Channel, channel } from 'node:diagnostics_channel';
import { publish } from '../events/channels.ts';
import type { CoordinatorMessage } from '../events/coordinator-event.ts';
import { log } from '../events/spine.ts';
import type { EngineEvent, WorkerInfo } from './queue/strategy.ts';
import { aboutOf } from './worker/task-channel.ts';

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
