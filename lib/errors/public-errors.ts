/** The errors that every entry point exports, and the types of their fields. */

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
export type {
  EnginePhase,
  NodeHealth,
  ReadinessReport,
  TaskPhase,
  TaskReadiness,
} from './phases.ts';
