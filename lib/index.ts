/**
 * The coordinator: one stop flag and one exception record for all the threads of a program, loopers,
 * and queues between threads.
 *
 * @module allstop
 */

export { Coordinator } from './coordinator/coordinator.ts';
export type {
  CoordinatorOptions,
  ErrorClass,
  JoinOptions,
  RunOptions,
} from './coordinator/coordinator-options.ts';
export type { DiagnoseOptions, Diagnosis } from './coordinator/diagnosis/diagnose.ts';
export type { JavaScriptThread, Place } from './coordinator/diagnosis/places.ts';
export type { StopExplanation } from './coordinator/explain.ts';
export type { CoordinatorHandle, QueueHandle } from './coordinator/handle.ts';
export type { CoordinatorForkOptions } from './coordinator/threads/fork.ts';
export type { JoinableThread, ThreadInfo } from './coordinator/threads/watch.ts';
export type { CoordinatorSpawnOptions } from './coordinator/threads/workers.ts';
export * from './errors/public-errors.ts';
export type { StopMessage, StragglerMessage, ThreadMessage } from './events/channels.ts';
export type { CoordinatorMessage } from './events/spine.ts';
export type {
  ChromeTrace,
  StopLatency,
  Timeline,
  TimelineEvent,
  TimelineEventType,
} from './events/timeline.ts';
export type { MissedTicks } from './looper/looper-loop.ts';
export { LooperThread, type LooperThreadOptions } from './looper/looper-thread.ts';
export {
  BoundedQueue,
  type BoundedQueueOptions,
  type DequeueManyOptions,
  type QueueWaitOptions,
} from './queue/bounded-queue.ts';
export {
  type EnqueueOp,
  QueueRunner,
  type QueueRunnerOptions,
  type QueueRunnerThread,
} from './queue/queue-runner.ts';
export type { StopRecord, StopRequester, SuppressedError } from './record/stop-record.ts';
