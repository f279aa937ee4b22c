/** Types of the calls of a module's functions. */

import type { AnyFunction } from './closures/module-exports.ts';
import type { PerWorkerValues } from './closures/per-worker.ts';

export type ScheduleOptions = {
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds from the call of `schedule` to the function's end (Infinity), queueing included.
   */
  timeoutMs?: number | undefined;
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
