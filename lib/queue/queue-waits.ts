/**
 * The pending promises of this JavaScript thread at one side of a queue (enqueue or dequeue),
 * first come, first served. A wait reserves no room and no item: it tries again when the queue
 * may have changed.
 */

import { addAbortListener, hasAborted, reasonOfAbort, removeAbortListener } from '../base/abort.ts';
import { now, setImmediate, Timer } from '../base/timer.ts';
import type { NativeQueue } from '../native/binding.ts';
import { hold, release } from '../native/native.ts';

/** The result of a try on a full queue (enqueue), or on one with too few items (dequeue). */
export const WOULD_WAIT: unique symbol = Symbol('would wait');

/**
 * One try of the operation. Blocks the thread for at most `ms` milliseconds, by default not at
 * all. Returns the result of the operation, or WOULD_WAIT; throws the error of the operation.
 * `least` is the number of items that a dequeue needs: that of its wait, or 1 when the time of
 * the wait is over.
 */
type Try<T> = (generation: number, ms?: number, least?: number) => T | typeof WOULD_WAIT;

export type WaitOptions = {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** How many items a dequeue waits for. Default 1. */
  least?: number;
  /** Makes the error with which the wait rejects after `timeoutMs`, if its last try fails. */
  timedOut: () => Error;
  /** Called when the wait ends, for whatever reason. */
  ended?: () => void;
  /** Called with a result at hand, just before the promise resolves to it. */
  arrived?: () => void;
};

type Waiting = {
  readonly generation: number;
  /** The number of items (for an enqueue: of free places) without which it need not try. */
  least: number;
  attempt(ms?: number): boolean;
  timeOut(): void;
};

const settled = Promise.resolve();

/** As arguments of a call they take 8 KiB of the stack: a try takes less, and the timer it clears. */
const frames: undefined[] = Array.from({ length: 1_024 });
const nothing = (): void => {};

const MOST_IN_A_TURN = 256;
const LONGEST_TURN_MS = 2;
let inThisTurn = 0;
let began = 0;

/**
 * Whether a promise of a queue may settle now, without a turn of the event loop. True at most
 * 256 times and for at most 2 ms in one turn: otherwise `for (;;) await queue.dequeue()` runs in
 * microtasks only and starves timers and signals.
 */
export function maySettleAtOnce(): boolean {
  if (inThisTurn === 0) {
    began = now();
    // Before the count, which nothing else resets: a stack overflow may throw here.
    setImmediate(() => {
      inThisTurn = 0;
    }).unref();
    inThisTurn = 1;
    return true;
  }
  inThisTurn += 1;
  return inThisTurn < MOST_IN_A_TURN && now() - began < LONGEST_TURN_MS;
}

export class QueueWaits {
  readonly #native: NativeQueue;
  readonly #isProducer: boolean;
  readonly #onIdle: () => void;
  readonly #waiting = new Set<Waiting>();
  /** Those of `#waiting` whose time is over, and that have one more try. */
  readonly #overdue = new Set<Waiting>();
  #serving = false;
  #turn = false;

  /** `onIdle` is called when the last wait has ended. */
  constructor(native: NativeQueue, isProducer: boolean, onIdle: () => void) {
    this.#native = native;
    this.#isProducer = isProducer;
    this.#onIdle = onIdle;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * The first wait tries, and may block for `ms`.
   *
   * @returns false if that wait still has to wait, true if it has ended or there was none
   * @throws RangeError: the stack is nearly full, which must not become the error of that wait
   */
  attemptFirst(ms?: number): boolean {
    for (const first of this.#waiting) {
      Reflect.apply(nothing, undefined, frames); // puts the arguments on the stack
      return first.attempt(ms);
    }
    return true;
  }

  /**
   * Adds a wait behind the others. It is listed last, after all that may throw: the promise rejects,
   * and there is no wait, if the stack is full, or if a polyfill's signal throws.
   */
  add<T>(generation: number, attempt: Try<T>, options: WaitOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { signal } = options;
      const end = (): void => {
        // An abort listener, called inside attempt(), has ended it.
        if (!this.#waiting.delete(waiting)) return;
        this.#overdue.delete(waiting);
        timer.clear();
        options.ended?.();
        release();
        if (this.#waiting.size > 0) return;
        this.#native.forget(this.#isProducer);
        this.#onIdle();
      };
      const waiting: Waiting = {
        generation,
        least: options.least ?? 1,
        timeOut: () => {
          reject(options.timedOut());
          end();
          unlisten();
        },
        attempt: (ms) => {
          if (hasAborted(signal)) {
            onAbort(); // the signal's 'abort' event has not reached us yet, but is due
            return true;
          }
          let settle: () => void;
          try {
            const result = attempt(generation, ms, waiting.least);
            if (result === WOULD_WAIT) return false;
            settle = () => {
              options.arrived?.();
              resolve(result);
            };
          } catch (error) {
            settle = () => reject(error);
          }
          end(); // before settle(): if the thread is ended in here, the item goes back to the queue
          settle();
          unlisten();
          return true;
        },
      };
      const unlisten = (): void => {
        if (signal !== undefined) removeAbortListener(signal, onAbort);
      };
      const onAbort = (): void => {
        reject(reasonOfAbort(signal));
        end();
        unlisten();
      };
      if (signal !== undefined) addAbortListener(signal, onAbort);
      this.#serveInATurn();
      const timer = new Timer(options.timeoutMs, () => {
        // The items that the queue has by now are not too late. They are enough also for a wait
        // for more. #serve lets this wait try them in its turn, and times it out if it fails.
        waiting.least = 1;
        this.#overdue.add(waiting);
        this.check();
      });
      try {
        hold();
      } catch (error) {
        timer.clear();
        throw error;
      }
      this.#waiting.add(waiting);
    });
  }

  /**
   * Lets the waits try again: the queue may have changed. They try in a microtask, so that
   * nothing runs between the moment a wait takes an item and its consumer's next line; not even
   * the end of this worker, which would lose the item.
   */
  check(): void {
    if (this.#serving || this.#waiting.size === 0) return;
    if (!maySettleAtOnce()) {
      this.#serveInATurn();
      return;
    }
    // Before the flag, as in #serveInATurn: a stack overflow may throw here.
    void settled.then(() => {
      this.#serving = false;
      this.#serve();
    });
    this.#serving = true;
  }

  /**
   * Lets the waits try after a turn of the event loop. Under load the queue has changed again by
   * then, and the other thread did not have to ring the doorbell of this one, which costs more
   * than the rest of the operation.
   */
  #serveInATurn(): void {
    if (this.#turn) return;
    setImmediate(() => {
      this.#turn = false;
      this.#serve();
    });
    this.#turn = true;
  }

  #serve(): void {
    let tooMany: number;
    do {
      // A wait for this number of items, or for more, has failed or would. It reserves none of
      // the items that the queue has, so the waits behind it for fewer items try, too.
      tooMany = Number.POSITIVE_INFINITY;
      for (const waiting of this.#waiting) {
        if (waiting.least >= tooMany) continue;
        if (!waiting.attempt()) {
          tooMany = waiting.least;
          if (tooMany === 1) break;
        } else if (!this.#isProducer) {
          // One wait per microtask: its consumer continues before the next wait takes an item. If
          // this thread is terminated in between, that next item stays in the queue.
          this.check();
          return;
        }
      }
      // The queue is empty (or full): those that the loop has not reached would fail, too.
      if (tooMany === 1) for (const waiting of this.#overdue) waiting.timeOut();
    } while (!this.#isRungOnChange(tooMany));
  }

  /**
   * Asks the native queue to ring the doorbell of this thread when it has `least` items (or, for
   * producers, room), and when the wait that began first must end.
   *
   * @returns false if that is so already, so that the waits should try again
   */
  #isRungOnChange(least: number): boolean {
    for (const first of this.#waiting) {
      return this.#native.await(this.#isProducer, first.generation, least);
    }
    return true;
  }
}
