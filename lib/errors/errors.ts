/**
 * Every error class of the package, with its stable `code`.
 *
 * An error keeps its class between threads and processes: the receiver rebuilds it as an
 * instance of the class of the same name (record/encoded-error.ts).
 */

import type { ReadinessReport } from './phases.ts';

/**
 * Base of all errors of this package. `code` is stable; messages are not.
 *
 * @example
 * ```js
 * import { AllstopError, Coordinator } from 'allstop';
 *
 * const coord = new Coordinator();
 * coord.stopAfter(10);
 * await coord.waitForStop();
 * try {
 *   await coord.join();
 * } catch (error) {
 *   console.log(error instanceof AllstopError, error.code); // true ERR_ALLSTOP_DEADLINE_EXCEEDED
 * }
 * ```
 */
export class AllstopError extends Error {
  /** `ERR_ALLSTOP`; each derived class has its own. */
  readonly code: string = 'ERR_ALLSTOP';
}

/** The input is exhausted. By default this stops a coordinator cleanly. */
export class OutOfRangeError extends AllstopError {
  /** Always `ERR_ALLSTOP_OUT_OF_RANGE`. */
  override readonly code: string = 'ERR_ALLSTOP_OUT_OF_RANGE';
}

/** The operation was cancelled by a stop, by a close, or because another operation failed. */
export class CancelledError extends AllstopError {
  /** Always `ERR_ALLSTOP_CANCELLED`. */
  override readonly code: string = 'ERR_ALLSTOP_CANCELLED';
}

/** The operation did not end within its timeout or before its deadline. */
export class DeadlineExceededError extends AllstopError {
  /** Always `ERR_ALLSTOP_DEADLINE_EXCEEDED`. */
  override readonly code: string = 'ERR_ALLSTOP_DEADLINE_EXCEEDED';
}

/** The object is in a state that does not allow the operation. */
export class FailedPreconditionError extends AllstopError {
  /** Always `ERR_ALLSTOP_FAILED_PRECONDITION`. */
  override readonly code: string = 'ERR_ALLSTOP_FAILED_PRECONDITION';
}

/** An argument has the right type and a value that this call can never accept. */
export class InvalidArgumentError extends AllstopError {
  /** Always `ERR_ALLSTOP_INVALID_ARGUMENT`. */
  override readonly code: string = 'ERR_ALLSTOP_INVALID_ARGUMENT';
}

/** A thread, process, worker or server that is needed is gone or cannot be reached. */
export class UnavailableError extends AllstopError {
  /** Always `ERR_ALLSTOP_UNAVAILABLE`. */
  override readonly code: string = 'ERR_ALLSTOP_UNAVAILABLE';
}

/** The handle is stale, or comes from another process or another copy of the package. */
export class InvalidHandleError extends AllstopError {
  /** Always `ERR_ALLSTOP_INVALID_HANDLE`. */
  override readonly code: string = 'ERR_ALLSTOP_INVALID_HANDLE';
}

/** A thread or task called a `join()` that waits for that same thread or task. */
export class SelfJoinError extends AllstopError {
  /** Always `ERR_ALLSTOP_SELF_JOIN`. */
  override readonly code: string = 'ERR_ALLSTOP_SELF_JOIN';
}

/** A thread that was still alive at the end of the grace period. */
export type Straggler = {
  /** The name with which the thread was registered. */
  name: string;
  /** What the thread is, as in ThreadInfo. */
  kind: 'worker' | 'process' | 'task' | 'looper' | 'native' | 'hook' | 'custom';
  /** The threadId of a worker, the OS thread id of a native thread, or the pid of a process. */
  threadId?: number;
  /** Milliseconds since the stop was requested. */
  runningForMs: number;
  /**
   * Of a native thread on Linux: state and wait channel of the kernel, `S (futex_wait_queue)`. Of a
   * hook that waits for its turn: `has not begun`. From
   * `diagnose()` and `join({ stacks: true })`, of each thread without a `stack`: its wait in words.
   */
  waitState?: string;
  /** From `diagnose()` and `join({ stacks: true })`: the JavaScript stack, innermost call first. */
  stack?: string;
};

/** Threads were still running at the end of the grace period of a `join()`. */
export class StragglersError extends AllstopError {
  /** Always `ERR_ALLSTOP_STRAGGLERS`. */
  override readonly code: string = 'ERR_ALLSTOP_STRAGGLERS';
  /** The threads that were still running. */
  readonly stragglers: Straggler[];

  /** `stragglers`: by default none. */
  constructor(message?: string, options?: { cause?: unknown; stragglers?: Straggler[] }) {
    super(message, options);
    this.stragglers = options?.stragglers ?? [];
  }
}

/** A C++ exception. `message` is the result of its `what()`. */
export class NativeError extends AllstopError {
  /** Always `ERR_ALLSTOP_NATIVE`. */
  override readonly code: string = 'ERR_ALLSTOP_NATIVE';
  /** The demangled C++ type, such as `std::runtime_error`; empty if the type is unknown. */
  readonly nativeType: string;

  /** `nativeType`: by default unknown, ''. */
  constructor(message?: string, options?: { cause?: unknown; nativeType?: string }) {
    super(message, options);
    this.nativeType = options?.nativeType ?? '';
  }
}

/** A data set that a function takes as an argument could not be made; `cause` says why. */
export class ClosureInputError extends AllstopError {
  /** Always `ERR_ALLSTOP_CLOSURE_INPUT`. */
  override readonly code: string = 'ERR_ALLSTOP_CLOSURE_INPUT';
}

/** A cluster was not ready in time. `report` names the tasks that are not, and why. */
export class ClusterNotReadyError extends AllstopError {
  /** Always `ERR_ALLSTOP_CLUSTER_NOT_READY`. */
  override readonly code: string = 'ERR_ALLSTOP_CLUSTER_NOT_READY';
  /** How far the cluster was when the error was made. */
  readonly report: ReadinessReport;

  /** `report`: by default one that knows nothing. */
  constructor(message?: string, options?: { cause?: unknown; report?: ReadinessReport }) {
    super(message, options);
    this.report = options?.report ?? { ready: false, engine: { phase: 'unknown' }, tasks: [] };
  }
}

/**
 * The reason of an aborted `signal` of a coordinator that was stopped without an error. It has
 * the `name` ('AbortError') and `code` ('ABORT_ERR') of Node's own class, which Node does not
 * export.
 */
export class AbortError extends Error {
  /** Always `ABORT_ERR`. */
  readonly code: string = 'ABORT_ERR';
}

/** The error classes of the package, by the `name` of their errors. */
export const errorClasses: ReadonlyMap<string, abstract new (...args: never[]) => Error> = new Map(
  [
    AllstopError,
    OutOfRangeError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
    InvalidHandleError,
    SelfJoinError,
    StragglersError,
    NativeError,
    ClosureInputError,
    ClusterNotReadyError,
    AbortError,
  ].map((errorClass) => [errorClass.name, errorClass]),
);

// `name` is on the prototype and not enumerable, as in the built-in classes.
for (const [name, errorClass] of errorClasses) {
  Object.defineProperty(errorClass.prototype, 'name', {
    value: name,
    writable: true,
    configurable: true,
  });
}

/** Errors by which a pool or a cluster says that the program closes it. */
const ofClose = new WeakSet<object>();

function byClose<E extends Error>(error: E): E {
  ofClose.add(error);
  return error;
}

/** Whether a pool or cluster was asked for something while it was closed, or has cancelled it so. */
export const isOfClose = (error: unknown): boolean => error instanceof Error && ofClose.has(error);

/** The error of what is asked of a pool that the program has closed. `what`: pool or cluster. */
export const poolClosed = (what: string): FailedPreconditionError =>
  byClose(new FailedPreconditionError(`The ${what} is closed: make a new one`));

/** The error of a call that comes while earlier calls may still end. */
export const poolClosing = (what: string): FailedPreconditionError =>
  byClose(new FailedPreconditionError(`The ${what} is closing`));

/** The error of a call that had not ended when the pool was closed. */
export const cancelledByClose = (what: string): CancelledError =>
  byClose(new CancelledError(`The ${what} was closed`));
