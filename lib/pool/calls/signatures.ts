/** Types of the calls of a module's functions. */

import type { ErrorClass } from '../../coordinator/coordinator-options.ts';
import type { Priority } from '../queue/call-lines.ts';
import type { AnyFunction } from '../queue/module-exports.ts';

/**
 * Stands for a value among the arguments of a call: of a cluster, a RemoteValue or PerWorkerValues.
 */
export type StandsFor<T> = { readonly standsFor: T };

/** The options of a call of `run` or `schedule`. */
export type ScheduleOptions = {
  /**
   * Cancels the function at any stage: the call, or its RemoteValue, rejects with the reason. By
   * default no signal does.
   */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds from the call to the function's end (default Infinity), queueing and all attempts
   * included; then the call, or its RemoteValue, rejects with a DeadlineExceededError.
   */
  timeoutMs?: number | undefined;
  /**
   * Milliseconds that the function may run (default Infinity), from its start, each attempt anew;
   * then the call, or its RemoteValue, rejects with a DeadlineExceededError.
   */
  runTimeoutMs?: number | undefined;
  /**
   * How often the function is run again: after the death of a worker that was running it, and after
   * errors that `retryOn` names, together. Default: the `retries` of the ClusterCoordinator.
   */
  retries?: number | undefined;
  /**
   * After which errors of its own the function is run again: a function that is given the error and
   * the number of the attempt that has failed (from 1), and returns true or false; or error classes,
   * names and codes. It is not asked about deadlines, cancellations and deaths of workers. If it
   * throws, the call is rejected with that. Arguments that were moved (`transfer`) cannot be sent
   * twice. Default: after none.
   */
  retryOn?: ((error: any, attempt: number) => boolean) | Iterable<ErrorClass | string> | undefined;
  /**
   * Milliseconds until then, in which the call is in line and holds no worker; or a function that is
   * given the number of the attempt that has failed, and returns them. Default: 0.
   */
  retryDelayMs?: number | ((attempt: number) => number) | undefined;
  /** 'high' is run before everything that is 'normal' (the default), and that before 'low'. */
  priority?: Priority | undefined;
  /** The index of the worker that runs it (default: any). A worker that is away is waited for. */
  worker?: number | undefined;
  /**
   * What the worker must have free, by name (`allstop worker --resources gpu=1`); the function
   * uses it up while it runs. Default: nothing.
   */
  resources?: Readonly<Record<string, number>> | undefined;
  /**
   * Called with each value that the function reports (`currentCall().report`); by `map` also with
   * the item. If it throws, the function is cancelled with that error as the reason. By default
   * only `RemoteValue.progress` gives the values.
   */
  onProgress?: ((value: unknown, item?: any) => void) | undefined;
};

/** The options of `run`. */
export type CallOptions = ScheduleOptions & {
  /**
   * The name of this piece of work among those of its function: any text. The result is kept in the
   * cluster's `results`; a call with the same key and the same arguments gets it from there. By
   * default the result is not kept.
   */
  key?: string | undefined;
};

/** The options of `map`: those of its calls, but that `signal` ends the whole map. */
export type MapOptions<E extends OnError = OnError, I = any> = ScheduleOptions & {
  /**
   * Gives the key of each item, as by `run`. Called with the item, when it is pulled, and its
   * number from 0. By default no result is kept.
   */
  key?: ((item: I, index: number) => string) | undefined;
  /**
   * How many items may be pulled and not yielded. Left out: twice as many as the workers run at
   * once, and where functions are short as many as they do in 10 ms.
   */
  concurrency?: number | undefined;
  /** Whether results are yielded in the order of their items (default true), or as they come. */
  ordered?: boolean | undefined;
  /**
   * 'throw' (the default): the first error ends the map. 'settle': results and errors are yielded
   * with their items, as by `Promise.allSettled`.
   */
  onError?: E | undefined;
};

/** What the error of a function does to its `map`: the option `onError`. */
export type OnError = 'throw' | 'settle';

/** What `map` yields with `onError: 'settle'`. */
export type SettledItem<R, I> = (PromiseFulfilledResult<R> | PromiseRejectedResult) & { item: I };

/** What `map` yields: results, or with `onError: 'settle'` a SettledItem for each item. */
export type Mapped<R, I, E extends OnError> = E extends 'settle' ? SettledItem<R, I> : R;

/** The results of `map`. `return`, which the end of a loop calls, cancels what is in flight. */
export type MapResults<T> = AsyncIterableIterator<T> & AsyncDisposable;

/** The argument of a function that can be called with one. */
export type ItemOf<F extends AnyFunction> = F extends (item: infer A) => unknown
  ? A | StandsFor<A>
  : never;

/** What `map` takes items from. Promises among the items of an iterable are awaited. */
export type Items<I> = Iterable<I | PromiseLike<I>> | AsyncIterable<I>;

/**
 * The arguments of a function, each of which may be a RemoteValue or PerWorkerValues instead. The
 * function waits for a RemoteValue outside the line, and gets its value.
 */
export type PerWorkerArgs<P extends readonly unknown[]> = {
  [I in keyof P]: P[I] | StandsFor<P[I]>;
};

/** What follows the function in a call: its arguments, left out if it needs none, and options. */
export type ScheduleArgs<P extends readonly unknown[], O = ScheduleOptions> = [] extends P
  ? [args?: PerWorkerArgs<P>, options?: O]
  : [args: PerWorkerArgs<P>, options?: O];

/** The names of the functions that a module exports. */
export type FunctionNames<M extends object> = {
  [K in keyof M]: M[K] extends AnyFunction ? K : never;
}[keyof M] &
  string;

/** What arrives of a value: of a Buffer a plain Uint8Array. (Types of its parts are not changed.) */
export type Arrived<T> = T extends Buffer ? Uint8Array : T;

export type Result<F extends AnyFunction> = Arrived<Awaited<ReturnType<F>>>;

export type Named<M extends object, K extends keyof M> = M[K] extends AnyFunction
  ? M[K]
  : AnyFunction;
