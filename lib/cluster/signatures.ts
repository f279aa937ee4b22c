/** How calls of a module's functions are typed. */

import type { AnyFunction } from './closures/module-exports.ts';
import type { PerWorkerValues } from './closures/per-worker.ts';

export type ScheduleOptions = {
  signal?: AbortSignal | undefined;
  /** For the closure's whole life, the wait for room included. */
  timeoutMs?: number | undefined;
};

/** What a function takes; each may be a worker's own. */
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

/** Any iterable, also one that a promise resolves to. */
export type DatasetOf<T> =
  | Iterable<T>
  | AsyncIterable<T>
  | PromiseLike<Iterable<T> | AsyncIterable<T>>;
