/** Types of the calls of a module's functions. */

import type { AnyFunction } from '../closures/module-exports.ts';
import type { PerWorkerValues } from '../closures/per-worker.ts';

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

/** The options of `map`: those of its calls, but that `signal` ends the whole map. */
export type MapOptions<E extends OnError = OnError> = ScheduleOptions & {
  /**
   * How many items may be pulled and not yielded. Left out: twice as many as the workers run at
   * once, and where functions are short as many as they do in 10 ms.
   */
  concurrency?: number | undefined;
  /** Whether results are yielded in the order of their items (true), or as they come. */
  ordered?: boolean | undefined;
  /**
   * 'throw' (the default): the first error ends the map. 'settle': results and errors are yielded
   * with their items, as by `Promise.allSettled`.
   */
  onError?: E | undefined;
};

export type OnError = 'throw' | 'settle';

/** What `map` yields with `onError: 'settle'`. */
export type SettledItem<R, I> = (PromiseFulfilledResult<R> | PromiseRejectedResult) & { item: I };

export type Mapped<R, I, E extends OnError> = E extends 'settle' ? SettledItem<R, I> : R;

/** The results of `map`. `return`, which the end of a loop calls, cancels what is in flight. */
export type MapResults<T> = AsyncIterableIterator<T> & AsyncDisposable;

/** The argument of a function that can be called with one. */
export type ItemOf<F extends AnyFunction> = F extends (item: infer A) => unknown
  ? A | PerWorkerValues<A>
  : never;

/** What `map` takes items from. Promises among the items of an iterable are awaited. */
export type Items<I> = Iterable<I | PromiseLike<I>> | AsyncIterable<I>;

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
