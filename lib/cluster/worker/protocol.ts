/**
 * What a coordinator and a worker of its machine say to each other. Arrays, whose first
 * element says which; several closures and several results go as one message.
 */

/** How a worker is started. */
export type WorkerSettings = {
  kind: 'cluster';
  module: string;
  job: string;
  index: number;
  /** Threads only: CLAIMS + 1 words of shared memory. */
  words?: Int32Array;
};

/**
 * Shared words of a worker thread. The word of a closure that was sent holds its id; who
 * turns that into something else has it: the worker that starts it (-id), or the
 * coordinator that takes it back (0). So it is known for certain what was started.
 */
export const CLAIMS = 256;
/** The word after them: the id of the closure that is asked to end. */
export const CANCELLED: number = CLAIMS;

export const TO_WORKER = {
  /** [run, ...[id, claim, attempt, name, args, perWorker]]; args may be bytes (value.ts) */
  run: 0,
  /** [prepare, id, resource] */
  prepare: 1,
  /** [cancel, id, reason as an encoded error] */
  cancel: 2,
  /** [stop, StopMessage]: processes only */
  stop: 3,
} as const;

export const FROM_WORKER = {
  /** [results, ...[id, state, value, microseconds]]; a value as bytes, if the arguments were */
  results: 0,
  /** [ready, names of functions] */
  ready: 1,
  /** [failed, encoded error]: the module cannot be imported */
  failed: 2,
  /** [prepared, id] */
  prepared: 3,
  /** [stop, StopMessage]: processes only */
  stop: 4,
  /** [dying, encoded error]: processes only; what it has not caught */
  dying: 5,
  /** [announcing, id, microseconds]: the next message is its result, and nothing else */
  announcing: 6,
} as const;

/** How each worker makes its own of a value: plain data, which is kept for new workers. */
export type Resource =
  | {
      readonly kind: 'dataset';
      readonly id: number;
      readonly name: string;
      /** Or as bytes. */
      readonly args: readonly unknown[] | Uint8Array;
    }
  | { readonly kind: 'iterator'; readonly id: number; readonly dataset: number }
  /** It cannot be made anywhere, and this is why. */
  | { readonly kind: 'broken'; readonly id: number; readonly record: Uint8Array };

/** The elements of a closure, and of a result. */
export const RUN_LENGTH = 6;
export const RESULT_LENGTH = 4;

/** Of a result. */
export const STATE = { ready: 0, failed: 1 } as const;

/** That a value cannot be sent is one error, also where the runtime names it not. */
export function dataCloneError(error: unknown): unknown {
  const isOurs = error instanceof Error && error.name === 'Error';
  return isOurs ? new DOMException(error.message, 'DataCloneError') : error;
}

/** What to do where a function's name is not known. */
export const PASS_A_NAME = 'pass the name of an export of the strategy’s module';
