/**
 * Those of this JavaScript thread who wait at one side of a queue, in their order. They
 * reserve nothing: each tries when it may come to something, the first one first.
 */

import { addAbortListener, removeAbortListener } from '../base/abort-listeners.ts';
import { now } from '../base/clock.ts';
import { Timer } from '../base/timer.ts';
import type { NativeQueue } from '../native/binding.ts';
import { hold, release } from '../native/doorbell.ts';

/** It would have to wait. */
export const WOULD_WAIT: unique symbol = Symbol('would wait');

/**
 * One try, which may block for `ms`. Returns what the wait comes to, or WOULD_WAIT.
 * Throws what it fails with.
 */
export type Try<T> = (generation: number, ms?: number) => T | typeof WOULD_WAIT;

export type WaitOptions = {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** What it fails with when the time is over. */
  timedOut: () => Error;
  /** However it ends. */
  ended?: () => void;
  /** With what the try came to, just before its consumer goes on with it. */
  arrived?: () => void;
};

type Waiting = { readonly generation: number; attempt(ms?: number): boolean };

const settled = Promise.resolve();

const MOST_IN_A_TURN = 256;
const LONGEST_TURN_MS = 2;
let inThisTurn = 0;
let began = 0;

/**
 * Whether a promise of this thread may settle without a turn of the event loop. Not for
 * ever: whoever awaits one item after the other would never let it turn.
 */
export function maySettleAtOnce(): boolean {
  if (inThisTurn++ === 0) {
    began = now();
    setImmediate(() => {
      inThisTurn = 0;
    }).unref();
    return true;
  }
  return inThisTurn < MOST_IN_A_TURN && now() - began < LONGEST_TURN_MS;
}

export class QueueWaits {
  readonly #native: NativeQueue;
  readonly #isProducer: boolean;
  readonly #onIdle: () => void;
  readonly #waiting = new Set<Waiting>();
  #serving = false;
  #turn = false;

  /** `onIdle`: nobody waits any more. */
  constructor(native: NativeQueue, isProducer: boolean, onIdle: () => void) {
    this.#native = native;
    this.#isProducer = isProducer;
    this.#onIdle = onIdle;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** The first in line tries, and may block for `ms`. False: it would still have to wait. */
  attemptFirst(ms?: number): boolean {
    for (const first of this.#waiting) return first.attempt(ms);
    return true;
  }

  /** Waits from now on, behind the others. */
  add<T>(generation: number, attempt: Try<T>, options: WaitOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { signal } = options;
      const end = (): void => {
        if (!this.#waiting.delete(waiting)) return; // by an abort listener that attempt() has run
        timer.clear();
        options.ended?.();
        release();
        if (this.#waiting.size > 0) return;
        this.#native.forget(this.#isProducer);
        this.#onIdle();
      };
      const waiting: Waiting = {
        generation,
        attempt: (ms) => {
          if (signal?.aborted) {
            onAbort(); // which the signal is just about to say
            return true;
          }
          let settle: () => void;
          try {
            const result = attempt(generation, ms);
            if (result === WOULD_WAIT) return false;
            settle = () => {
              options.arrived?.();
              resolve(result);
            };
          } catch (error) {
            settle = () => reject(error);
          }
          end(); // first: if the thread ends meanwhile, the item has not arrived
          settle();
          unlisten();
          return true;
        },
      };
      const unlisten = (): void => {
        if (signal !== undefined) removeAbortListener(signal, onAbort);
      };
      const onAbort = (): void => {
        reject(signal?.reason);
        end();
        unlisten();
      };
      const timer = new Timer(options.timeoutMs, () => {
        for (const first of this.#waiting) {
          if (first === waiting) first.attempt(); // what is there by now is not too late
          break;
        }
        this.check(); // those who are behind it
        if (!this.#waiting.has(waiting)) return;
        reject(options.timedOut());
        end();
        unlisten();
      });
      this.#waiting.add(waiting);
      hold();
      this.#serveInATurn();
      if (signal === undefined) return;
      try {
        addAbortListener(signal, onAbort);
      } catch (error) {
        reject(error);
        end();
      }
    });
  }

  /**
   * There may be something for those who wait. They take it in a microtask, so that
   * nothing comes between that and their going on with it: not the end of a worker,
   * either.
   */
  check(): void {
    if (this.#serving || this.#waiting.size === 0) return;
    if (!maySettleAtOnce()) {
      this.#serveInATurn();
      return;
    }
    this.#serving = true;
    void settled.then(() => {
      this.#serving = false;
      this.#serve();
    });
  }

  /**
   * Not at once: under load there is something again after a turn of the event loop,
   * and whoever puts it there is spared ringing for it, which takes longer than all the
   * rest.
   */
  #serveInATurn(): void {
    if (this.#turn) return;
    this.#turn = true;
    setImmediate(() => {
      this.#turn = false;
      this.#serve();
    });
  }

  #serve(): void {
    do {
      for (const waiting of this.#waiting) {
        if (!waiting.attempt()) break;
        if (this.#isProducer) continue;
        // Its consumer goes on before the next one takes an item: that may be the last thing
        // that this thread does.
        this.check();
        return;
      }
    } while (!this.#isTold());
  }

  /** Whether nothing can be done until we are told again. */
  #isTold(): boolean {
    for (const first of this.#waiting) {
      return this.#native.await(this.#isProducer, first.generation);
    }
    return true;
  }
}
