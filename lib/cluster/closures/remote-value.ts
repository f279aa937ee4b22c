/** What a scheduled function comes to. TensorFlow's RemoteValue. */

import { addAbortListener, removeAbortListener } from '../../base/abort-listeners.ts';
import { checkDuration, checkOptions, checkSignal } from '../../base/arguments.ts';
import { Timer } from '../../base/timer.ts';
import { DeadlineExceededError } from '../../errors/errors.ts';

export type RemoteState = 'pending' | 'ready' | 'failed' | 'cancelled';

export type FetchOptions = {
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
};

/** How the cluster settles one. The first call counts; false: this was not the first. */
export type Settle = (state: Exclude<RemoteState, 'pending'>, value: unknown) => boolean;

/**
 * The result of a scheduled function. It settles once, whatever becomes of the workers,
 * and then stays: a value that is here survives its worker. That nobody fetches an error
 * is no unhandled rejection: `schedule`, `join` or `done` throw it.
 */
export class RemoteValue<T> {
  #state: RemoteState = 'pending';
  #value: unknown;
  #waiting: { resolve: (value: T) => void; reject: (error: unknown) => void }[] | undefined;

  /** @internal `schedule` makes them. */
  constructor(hand: (settle: Settle) => void) {
    hand((state, value) => {
      if (this.#state !== 'pending') return false;
      this.#state = state;
      this.#value = value;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      for (const { resolve, reject } of waiting ?? []) {
        if (state === 'ready') resolve(value as T);
        else reject(value);
      }
      return true;
    });
  }

  /** 'cancelled': it has not run to its end, because of a stop, a close, or another's error. */
  get state(): RemoteState {
    return this.#state;
  }

  /**
   * The value, as soon as it is there.
   *
   * @throws (rejects) with what the function threw; CancelledError; UnavailableError: its
   *   workers have died too often; DeadlineExceededError: after `timeoutMs`, or the
   *   function's own deadline; the reason of `signal`, also if the value is there. A fetch that is
   *   given up leaves the function alone.
   */
  fetch(options?: FetchOptions): Promise<T> {
    try {
      const { timeoutMs = Number.POSITIVE_INFINITY, signal } = checkOptions('options', options);
      checkDuration('options.timeoutMs', timeoutMs);
      if (signal !== undefined) checkSignal('options.signal', signal);
      if (signal?.aborted) return Promise.reject(signal.reason);
      if (this.#state === 'ready') return Promise.resolve(this.#value as T);
      if (this.#state !== 'pending') return Promise.reject(this.#value);
      return this.#wait(timeoutMs, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiter = { resolve, reject };
      this.#waiting ??= [];
      this.#waiting.push(waiter);
      if (signal === undefined && timeoutMs === Number.POSITIVE_INFINITY) return;
      const giveUp = (error: unknown): void => {
        clean();
        this.#waiting = this.#waiting?.filter((each) => each !== waiter);
        reject(error);
      };
      const onAbort = (): void => giveUp(signal?.reason);
      const timer = new Timer(timeoutMs, () => {
        giveUp(new DeadlineExceededError(`The value was not there after ${timeoutMs} ms`));
      });
      const clean = (): void => {
        timer.clear();
        if (signal !== undefined) removeAbortListener(signal, onAbort);
      };
      waiter.resolve = (value) => {
        clean();
        resolve(value);
      };
      waiter.reject = (error) => {
        clean();
        reject(error);
      };
      if (signal !== undefined) addAbortListener(signal, onAbort);
    });
  }
}
