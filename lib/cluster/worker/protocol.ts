/**
 * The messages between a coordinator and a worker on the same machine: arrays whose first
 * element is the kind of message. Several closures, or several results, share one message.
 */

/** The settings that a worker is started with. */
export type WorkerSettings = {
  kind: 'cluster';
  module: string;
  job: string;
  index: number;
  /** Threads only: CLAIMS claims, then the word CANCELLED, in shared memory. */
  words?: Int32Array;
};

/**
 * The number of claims that a coordinator shares with a worker thread. The claim of a closure
 * that was sent holds the closure's id. By one compare-and-exchange either the worker starts the
 * closure (-id) or the coordinator recalls it (0): so both know which closures were started. When
 * the function has ended, the worker writes ENDED.
 */
export const CLAIMS = 256;
/** The claim of a closure that has ended. No id is so large. */
export const ENDED: number = -(2 ** 31);
/** Index of the word after the claims: the id of the closure that was cancelled last. */
export const CANCELLED: number = CLAIMS;

/**
 * What has become of a closure that comes back from a worker without a result: it was only sent
 * there; it was running there when the worker died; or it had ended there, and its result was
 * lost with the worker.
 */
export type Fate = 'sent' | 'running' | 'ended';

/**
 * The arguments of a call on their way to a worker: values, or packed (packed-arguments.ts). If they
 * are a Uint8Array, the worker packs the result, too.
 */
export type PassedArguments = readonly unknown[] | ArrayBuffer | Uint8Array;

export const TO_WORKER = {
  /** [run, ...[id, index of claim, attempt, name, args: PassedArguments, perWorker]] */
  run: 0,
  /** [prepare, id, resource] */
  prepare: 1,
  /** [cancel, id, reason as an encoded error] */
  cancel: 2,
  /** [stop, StopMessage]: processes only */
  stop: 3,
} as const;

export const FROM_WORKER = {
  /** [results, ...[id, state, value, microseconds]]; the value is bytes if the arguments were a Uint8Array */
  results: 0,
  /** [ready, names of the module's functions] */
  ready: 1,
  /** [failed, encoded error]: the module cannot be imported */
  failed: 2,
  /** [prepared, id] */
  prepared: 3,
  /** [stop, StopMessage]: processes only */
  stop: 4,
  /** [dying, encoded error]: processes only; an uncaught error is about to end the process */
  dying: 5,
  /** [announcing, id, microseconds]: the next message is the result of this closure alone */
  announcing: 6,
} as const;

/**
 * How a worker makes its own data set or iterator. Plain data, kept for workers that start later.
 */
export type Resource =
  | {
      readonly kind: 'dataset';
      readonly id: number;
      readonly name: string;
      readonly args: PassedArguments;
    }
  | { readonly kind: 'iterator'; readonly id: number; readonly dataset: number }
  /** A resource that cannot be made: functions that use it fail with this encoded error. */
  | { readonly kind: 'broken'; readonly id: number; readonly record: Uint8Array };

/** The number of elements that a closure has in `run`, and a result in `results`. */
export const RUN_LENGTH = 6;
export const RESULT_LENGTH = 4;

/** The state of a result. */
export const STATE = { ready: 0, failed: 1 } as const;

/** Turns a plain Error of a serializer into the DataCloneError that structuredClone throws. */
export function dataCloneError(error: unknown): unknown {
  const isPlain = error instanceof Error && error.name === 'Error';
  return isPlain ? new DOMException(error.message, 'DataCloneError') : error;
}

/**
 * Makes the error for arguments that cannot be cloned, with the index of the first argument that
 * `clone` refuses. An `error` of another kind (of a getter; RangeError) is returned as it is.
 */
export function argumentError(
  error: unknown,
  name: string,
  args: readonly unknown[],
  clone: (value: unknown) => unknown,
): unknown {
  const known = dataCloneError(error);
  if (!(known instanceof Error && known.name === 'DataCloneError')) return known;
  const isRefused = (value: unknown): boolean => {
    try {
      clone(value);
      return false;
    } catch {
      return true;
    }
  };
  const index = [...args].findIndex(isRefused);
  if (index === -1) return known;
  const isFunction = typeof args[index] === 'function';
  const why = isFunction ? 'functions cannot be sent to workers' : known.message;
  return new DOMException(
    `Argument ${index} of '${name}' cannot be cloned: ${why}`,
    'DataCloneError',
  );
}

/** The advice in errors about a function that is not found. */
export const PASS_A_NAME = 'pass the name of an export of the strategy’s module';
