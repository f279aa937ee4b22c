/** Types of the calls of a module's functions. */

import type { AnyFunction } from './closures/module-exports.ts';
import type { PerWorkerValues } from './closures/per-worker.ts';

/** The options of a call of `run` or `schedule`. */
export type ScheduleOptions = {
  /** Cancels the function at any stage: the call, or its RemoteValue, rejects with the reason. */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds from the call to the function's end (Infinity), queueing included; then the call,
   * or its RemoteValue, rejects with a DeadlineExceededError.
   */
  timeoutMs?: number | undefined;
  /**
   * How often the function is run again after the death of a worker that was running it (the
   * `retries` of the ClusterCoordinator).
   */
  retries?: number | undefined;
};

/** The arguments of a function, each of which may be PerWorkerValues instead. */
export type PerWorkerArgs<P extends readonly unknown[]> = {
  [I in keyof P]: P[I] | PerWorkerValues<P[I]>;
};

export type ScheduleArgs<P extends readonly unknown[]> = [] extends P
  ? [args?: PerWorkerArgs<P>, options?: ScheduleOptions]
  : [args: PerWorkerArgs<P>, options?: ScheduleOptions];

export type FunctionNames<M extends object> = {
  [K in keyof M]: M[K] extends AnyFunction ? K : never;
}[keyof M] &
  string;

export type Result<F extends AnyFunction> = Awaited<ReturnType<F>>;

export type Named<M extends object, K extends keyof M> = M[K] extends AnyFunction
  ? M[K]
  : AnyFunction;

/** An iterable, an async iterable, or a promise of one. */
export type DatasetOf<T> =
  | Iterable<T>
  | AsyncIterable<T>
  | PromiseLike<Iterable<T> | AsyncIterable<T>>;
