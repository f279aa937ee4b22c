export type { StopRecord, StopRequester, SuppressedError } from './attachment.ts';
export {
  Coordinator,
  type CoordinatorHandle,
  type CoordinatorOptions,
  type ErrorClass,
  type JoinOptions,
} from './coordinator.ts';
export {
  AllstopError,
  CancelledError,
  ClosureInputError,
  ClusterNotReadyError,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  InvalidHandleError,
  NativeError,
  OutOfRangeError,
  SelfJoinError,
  type Straggler,
  StragglersError,
  UnavailableError,
} from './errors.ts';
export type { StopExplanation } from './explain.ts';
export type { JoinableThread, ThreadInfo } from './threads.ts';
