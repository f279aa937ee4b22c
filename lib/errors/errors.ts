/**
 * Every error class of the package, with its stable `code`.
 *
 * The classes survive borders: an error that reaches another thread is rebuilt
 * there as an instance of the class of the same name (see error-record.ts).
 */

import type { ReadinessReport } from './readiness-report.ts';

/** Base of all errors of this package. `code` is stable; messages are not. */
export class AllstopError extends Error {
  readonly code: string = 'ERR_ALLSTOP';
}

/** The input is exhausted. By default this stops a coordinator cleanly. */
export class OutOfRangeError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_OUT_OF_RANGE';
}

/** The operation was cancelled by a stop, a close, or another's error. */
export class CancelledError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_CANCELLED';
}

/** The time given was over before the operation was. */
export class DeadlineExceededError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_DEADLINE_EXCEEDED';
}

/** Not allowed in the state that things are in. */
export class FailedPreconditionError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_FAILED_PRECONDITION';
}

/** An argument of the right type that can never be right here. */
export class InvalidArgumentError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_INVALID_ARGUMENT';
}

/** A thread, process, worker or engine that was needed is gone. */
export class UnavailableError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_UNAVAILABLE';
}

/** A handle that is stale, of another process, or of another copy of the package. */
export class InvalidHandleError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_INVALID_HANDLE';
}

/** A thread called `join()` that it would itself have to end before. */
export class SelfJoinError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_SELF_JOIN';
}

/** A thread that was still alive when the grace period was over. */
export type Straggler = {
  name: string;
  kind: 'worker' | 'process' | 'task' | 'looper' | 'native' | 'custom';
  /** JavaScript's threadId, the OS thread id of a native thread, or a pid. */
  threadId?: number;
  /** Milliseconds since the stop was requested. */
  runningForMs: number;
  /** For native threads on Linux: what the kernel says it waits in, `S (futex_wait_queue)`. */
  waitState?: string;
};

/** Threads were still running when the grace period of a `join()` was over. */
export class StragglersError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_STRAGGLERS';
  readonly stragglers: Straggler[];

  constructor(message?: string, options?: { cause?: unknown; stragglers?: Straggler[] }) {
    super(message, options);
    this.stragglers = options?.stragglers ?? [];
  }
}

/** A C++ exception. `message` is what `what()` said. */
export class NativeError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_NATIVE';
  /** The demangled C++ type, `std::runtime_error`; empty if it is not known. */
  readonly nativeType: string;

  constructor(message?: string, options?: { cause?: unknown; nativeType?: string }) {
    super(message, options);
    this.nativeType = options?.nativeType ?? '';
  }
}

/** An input of a closure could not be made; the cause says why. */
export class ClosureInputError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_CLOSURE_INPUT';
}

/** A cluster was not ready in time; `report` says what blocks. */
export class ClusterNotReadyError extends AllstopError {
  override readonly code: string = 'ERR_ALLSTOP_CLUSTER_NOT_READY';
  readonly report: ReadinessReport;

  constructor(message?: string, options?: { cause?: unknown; report?: ReadinessReport }) {
    super(message, options);
    this.report = options?.report ?? { ready: false, engine: { phase: 'unknown' }, tasks: [] };
  }
}

/**
 * The reason of an aborted `signal` when nobody reported an error. Shaped as
 * Node's own (`name` 'AbortError', `code` 'ABORT_ERR'), which is not exported.
 */
export class AbortError extends Error {
  readonly code: string = 'ABORT_ERR';
}

/** By the name that errors of the class carry. */
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

// On the prototype and not enumerable, as the built-in classes have it.
for (const [name, errorClass] of errorClasses) {
  Object.defineProperty(errorClass.prototype, 'name', {
    value: name,
    writable: true,
    configurable: true,
  });
}
