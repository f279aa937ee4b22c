export { BoundedQueue, type BoundedQueueOptions, type QueueWaitOptions } from './bounded-queue.ts';
export { Coordinator } from './coordinator.ts';
export type { CoordinatorOptions, ErrorClass, JoinOptions } from './coordinator-options.ts';
export type { StopExplanation } from './explain.ts';
export type { CoordinatorHandle, QueueHandle } from './handle.ts';
export type { MissedTicks } from './looper-schedule.ts';
export { LooperThread, type LooperThreadOptions } from './looper-thread.ts';
export * from './public-errors.ts';
export {
  type EnqueueOp,
  QueueRunner,
  type QueueRunnerOptions,
  type QueueRunnerThread,
} from './queue-runner.ts';
export type { StopRecord, StopRequester, SuppressedError } from './stop-record.ts';
export type { JoinableThread, ThreadInfo } from './threads.ts';
