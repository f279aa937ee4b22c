/** The result of a scheduled function. TensorFlow's RemoteValue. */

import { addAbortListener, reasonOfAbort, removeAbortListener } from '../../base/abort.ts';
import { illegalConstructor } from '../../base/arguments.ts';
import { rejection, withCallersFrames } from '../../base/callers-frames.ts';
import { showAs } from '../../base/inspect.ts';
import { define } from '../../base/thrown-value.ts';
import { Timer, turn } from '../../base/timer.ts';
import { CancelledError, DeadlineExceededError } from '../../errors/errors.ts';
import { checkWaitOptions } from '../../pool/calls/calls.ts';
import type { Settle } from '../../pool/queue/call-queue.ts';
import { giveFailure, noteFailure } from '../../pool/queue/unseen-functions.ts';
import { RecentValues } from '../../pool/worker/recent-values.ts';
import { NO_REMOTE_VALUE } from '../../values/lost-values.ts';
import { unpackValue } from '../../values/value.ts';

// `RemoteValue.progress`: what a function has reported, for any number of readers.

const MOST = 4_096;
const MOST_BYTES = 1024 * 1024;

class ProgressValues implements AsyncIterable<unknown> {
  readonly #recent = new RecentValues(MOST, MOST_BYTES);
  #hasEnded = false;
  readonly #wake: (() => void)[] = [];

  add(values: readonly Uint8Array[]): void {
    for (const value of values) this.#recent.add(value);
    this.#wakeAll();
  }

  /** The function reports no more. */
  end(): void {
    this.#hasEnded = true;
    this.#wakeAll();
  }

  /** Each reader begins with the oldest value that is kept. */
  async *[Symbol.asyncIterator](): AsyncGenerator<unknown, undefined> {
    const recent = this.#recent;
    for (let next = 0; ; ) {
      next = Math.max(next, recent.first); // what was dropped meanwhile is skipped
      if (next < recent.end) {
        next += 1;
        yield unpackValue(recent.at(next - 1));
      } else if (this.#hasEnded) return undefined;
      else await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

/** How far a RemoteValue is: `RemoteValue.state`. */
export type RemoteState = 'pending' | 'ready' | 'failed' | 'cancelled';

/** The options of `RemoteValue.fetch`. */
export type FetchOptions = {
  /** Milliseconds after which the fetch rejects with a DeadlineExceededError. Default: Infinity. */
  timeoutMs?: number | undefined;
  /**
   * When it aborts, the fetch rejects with the signal's reason, and the function goes on. Default:
   * no signal.
   */
  signal?: AbortSignal | undefined;
};

const notEnded = (timeoutMs: number): Error =>
  withCallersFrames(
    new DeadlineExceededError(
      `fetch() timed out after ${timeoutMs} ms: the function has not ended`,
    ),
  );

type Settled = (state: Exclude<RemoteState, 'pending'>, value: unknown) => void;

type Waiter<T> = { readonly resolve: (value: T | Promise<never>) => void; clean?: () => void };

const NOBODY: ReadonlySet<never> = new Set<never>();

type Cancellable = { cancel(reason: unknown): void };

/** The first argument of the constructor, which programs do not have. */
const MAKING = Symbol('making a RemoteValue');

/** Listeners that are to be called. One may settle a value, that another, and so on without end. */
const untold: (() => void)[] = [];

function tellAll(): void {
  try {
    for (const tell of untold) tell();
  } finally {
    untold.length = 0;
  }
}

/** Makes the RemoteValue of a call. `start` makes the call, and returns what `cancel` cancels. */
export let makeRemoteValue: <T>(start: (settle: Settle) => Cancellable) => RemoteValue<T>;

/**
 * The result of a scheduled function. It settles once, whatever happens to the workers, and
 * then keeps its value or error, also when the worker is gone. An error that is never fetched
 * is not an unhandled rejection: `schedule`, `join` or `done` throw it, or it is written to
 * standard error when the process ends.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
 *
 * const value = await cluster.schedule('square', [7]);
 * console.log(await value.fetch(), value.state); // 49 ready
 * await cluster.close();
 * ```
 */
export class RemoteValue<T> {
  /** For the compiler only: the type that a function receives. */
  declare readonly standsFor: T;
  /** @internal */
  readonly uncloneable: symbol = NO_REMOTE_VALUE;
  #state: RemoteState = 'pending';
  #value: unknown;
  #progress: ProgressValues | undefined;
  /** What `cancel` cancels, while the value is pending. */
  #source: Cancellable | undefined;
  // Sets: of very many, each may leave before the others.
  #waiting: Set<Waiter<T>> | undefined;
  #listeners: Set<Settled> | undefined;

  static {
    makeRemoteValue = (start) => new RemoteValue(MAKING, start);
    showAs(RemoteValue.prototype, (remote) => ({ facts: [remote.#state] }));
  }

  private constructor(making: symbol, start: (settle: Settle) => Cancellable) {
    if (making !== MAKING) {
      throw illegalConstructor('a RemoteValue is made by cluster.schedule(fn, args)');
    }
    this.#source = start((state, value) => {
      if (this.#state !== 'pending') return false;
      this.#source = undefined;
      this.#state = state;
      this.#value = value;
      this.#progress?.end();
      const waiting = this.#waiting ?? NOBODY;
      const listeners = this.#listeners ?? NOBODY;
      this.#waiting = undefined;
      this.#listeners = undefined;
      if (waiting.size + listeners.size > 0) giveFailure(value);
      else if (state === 'failed') noteFailure(value);
      const isTelling = untold.length > 0;
      for (const listener of listeners) untold.push(() => listener(state, value));
      if (!isTelling) tellAll();
      for (const { resolve, clean } of waiting) {
        clean?.();
        resolve(state === 'ready' ? (value as T) : rejection(value));
      }
      return true;
    });
  }

  /**
   * Cancels the function, wherever it is: `fetch` rejects with `reason`, or with a CancelledError
   * if that is undefined. It is no failure: nothing else is cancelled, and no `schedule`, `join` or
   * `done` throws it. If the function runs, its `currentCall().signal` aborts; if it has not ended
   * `cancelGraceMs` later, its worker is replaced. Does nothing when the value has settled.
   */
  cancel(reason?: unknown): void {
    this.#source?.cancel(
      reason === undefined
        ? new CancelledError('The function was cancelled by its caller')
        : reason,
    );
  }

  /**
   * Calls `listener` in the moment in which the value settles, before `fetch` resolves; now, if it
   * has settled.
   *
   * @internal
   * @returns a function after which it is not called any more
   */
  static onSettled(remote: RemoteValue<unknown>, listener: Settled): () => void {
    if (remote.#state !== 'pending') {
      listener(remote.#state, remote.#value);
      return () => {};
    }
    remote.#listeners ??= new Set();
    remote.#listeners.add(listener);
    return () => remote.#listeners?.delete(listener);
  }

  /**
   * The values that the function reports (`currentCall().report`), until it has ended. They are
   * kept for readers that begin late or are slow: the newest 4,096, at most 1 MiB; a reader skips
   * what is older. When the function is run again, because its worker has died, the values of the
   * next attempt follow. The end of the values is no error, whatever has become of the function.
   */
  get progress(): AsyncIterable<unknown> {
    return this.#reported();
  }

  #reported(): ProgressValues {
    if (this.#progress === undefined) {
      this.#progress = new ProgressValues();
      if (this.#state !== 'pending') this.#progress.end();
    }
    return this.#progress;
  }

  /** @internal The function has reported these values, which are packed. */
  static report(remote: RemoteValue<unknown>, values: readonly Uint8Array[]): void {
    remote.#reported().add(values);
  }

  /** 'cancelled': `cancel`, a stop, `close`, the call's `signal` or another function's error has ended it. */
  get state(): RemoteState {
    return this.#state;
  }

  /**
   * Resolves with the function's result. A fetch that times out or is aborted does not affect
   * the function.
   *
   * @throws (rejects) the error that the function threw; CancelledError; UnavailableError: its
   *   workers have died too often; DeadlineExceededError: `timeoutMs` (milliseconds, default
   *   Infinity) or the deadline of the call has passed; the reason of `signal`, even if the
   *   value is there
   */
  fetch(options?: FetchOptions): Promise<T> {
    try {
      const { signal, timeoutMs } = checkWaitOptions(options);
      if (signal?.aborted) return Promise.reject(reasonOfAbort(signal));
      if (this.#state === 'ready') return Promise.resolve(this.#value as T);
      if (this.#state !== 'pending') {
        giveFailure(this.#value);
        return rejection(this.#value);
      }
      if (timeoutMs === 0) {
        // Decided here: a timer would give a value that comes in a turn of the event loop, by chance.
        const error = notEnded(timeoutMs);
        return turn().then(() => rejection(error)); // a loop of such calls starves nothing
      }
      return this.#wait(timeoutMs, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<T> {
    return new Promise<T>((resolve) => {
      const waiter: Waiter<T> = { resolve };
      this.#waiting ??= new Set();
      this.#waiting.add(waiter);
      if (signal === undefined && timeoutMs === Number.POSITIVE_INFINITY) return;
      const giveUp = (error: unknown): void => {
        clean();
        this.#waiting?.delete(waiter);
        resolve(rejection(error));
      };
      const onAbort = (): void => giveUp(reasonOfAbort(signal));
      const timer = new Timer(timeoutMs, () => {
        giveUp(notEnded(timeoutMs));
      });
      const clean = (): void => {
        timer.clear();
        if (signal !== undefined) removeAbortListener(signal, onAbort);
      };
      waiter.clean = clean;
      if (signal !== undefined) addAbortListener(signal, onAbort);
    });
  }
}

// `fetch()` of a structure that contains RemoteValues.

/** `T` with each RemoteValue in its arrays, plain objects, Maps and Sets replaced by its value. */
export type Fetched<T> =
  T extends RemoteValue<infer V>
    ? V
    : T extends ReadonlyMap<infer K, infer V>
      ? Map<K, Fetched<V>>
      : T extends ReadonlySet<infer V>
        ? Set<Fetched<V>>
        : T extends readonly unknown[]
          ? { -readonly [I in keyof T]: Fetched<T[I]> }
          : T extends (...args: never[]) => unknown
            ? T
            : T extends object
              ? FetchedFields<T>
              : T;

/** A type without RemoteValues stays itself: mapping its fields would lose that it is a class. */
type FetchedFields<T extends object> = T extends { [K in keyof T]: Fetched<T[K]> }
  ? T
  : { [K in keyof T]: Fetched<T[K]> };

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Resolves with a copy in which each RemoteValue is replaced by its value. Values other than
 * arrays, plain objects, Maps and Sets are not copied. Holes of arrays stay holes.
 *
 * @throws (rejects) the error of the first RemoteValue to fail
 */
export async function fetchAll(structure: unknown): Promise<unknown> {
  const copies = new Map<object, unknown>();
  // None is fetched before the walk has ended: a getter or proxy that throws leaves nothing behind.
  const found: { remote: RemoteValue<unknown>; put: (value: unknown) => void }[] = [];
  const walk = (value: unknown, put: (copy: unknown) => void): void => {
    if (typeof value !== 'object' || value === null) {
      put(value);
    } else if (copies.has(value)) {
      put(copies.get(value));
    } else if (value instanceof RemoteValue) {
      found.push({ remote: value, put });
    } else if (Array.isArray(value)) {
      const copy: unknown[] = [];
      copy.length = value.length;
      copies.set(value, copy);
      put(copy);
      for (const key of Object.keys(value)) {
        const index = Number(key);
        if (!(index < value.length)) break; // the other keys come after the indexes
        walk(value[index], (made) => (copy[index] = made));
      }
    } else if (value instanceof Map) {
      const copy = new Map<unknown, unknown>([...value.keys()].map((key) => [key, undefined]));
      copies.set(value, copy);
      put(copy);
      for (const [key, each] of value) walk(each, (made) => copy.set(key, made));
    } else if (value instanceof Set) {
      const items: unknown[] = [];
      const copy = new Set<unknown>();
      copies.set(value, copy);
      put(copy);
      const all = [...value];
      for (const [index, each] of all.entries()) walk(each, (made) => (items[index] = made));
      atEnd.push(() => {
        for (const item of items) copy.add(item);
      });
    } else if (isPlain(value)) {
      const copy: Record<string, unknown> = Object.create(Object.getPrototypeOf(value));
      copies.set(value, copy);
      put(copy);
      for (const [key, each] of Object.entries(value)) {
        define(copy, key, undefined); // in the order of the keys, whichever value comes first
        walk(each, (made) => define(copy, key, made));
      }
    } else {
      put(value);
    }
  };
  const atEnd: (() => void)[] = [];
  let result: unknown;
  walk(structure, (copy) => {
    result = copy;
  });
  await Promise.all(found.map(({ remote, put }) => remote.fetch().then(put)));
  for (const finish of atEnd) finish();
  return result;
}
