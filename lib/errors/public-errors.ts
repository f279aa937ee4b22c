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
export type { EnginePhase, TaskPhase } from './phases.ts';
export type { NodeHealth, ReadinessReport, TaskReadiness } from './readiness-report.ts';
