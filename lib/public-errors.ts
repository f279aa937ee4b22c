/** The errors that every entry point exports. */

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
