/**
 * The clock, turns of the event loop, timers of any length (Node's fire at once beyond 2^31 ms), and
 * promises with a time limit.
 */

import { addAbortListener, reasonOfAbort, removeAbortListener } from './abort.ts';

// Kept from when this module was loaded: fake timers that a test installs later do not affect the
// clock, no turn of the event loop and no RealTimer. (A Timer follows them.)
const { hrtime } = process;
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate;
export const clearImmediate: typeof globalThis.clearImmediate = globalThis.clearImmediate;

/**
 * Milliseconds of the monotonic clock, since some moment. Not `performance`: its first use makes
 * Node 20 load ten modules, in each thread.
 */
export function now(): number {
  const [seconds, nanoseconds] = hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

/** One turn of the event loop: everything that is ready now runs first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Rejects after a turn of the event loop: a loop of calls that look, and do not wait, starves nothing. */
export async function rejectInATurn(error: Error): Promise<never> {
  await turn();
  throw error;
}

const settled = Promise.resolve();

/** Calls `run` in a microtask. (Node makes an AsyncResource for each `queueMicrotask`.) */
export function soon(run: () => void): void {
  void settled.then(run);
}

/** A loop of awaited calls is interrupted after this time. */
const LONGEST_TURN_MS = 1;

/**
 * `for (...) await schedule()` runs in microtasks only, which would starve incoming results:
 * `give` yields to the event loop at least every millisecond.
 */
export class EventLoopYield {
  /** When the event loop last turned for `give`. */
  #turnedAt: number = performance.now();

  /** Resolves to `value`, at once or after the event loop has turned. */
  async give<T>(value: T): Promise<T> {
    if (performance.now() - this.#turnedAt > LONGEST_TURN_MS) {
      await turn();
      this.#turnedAt = performance.now();
    }
    return value;
  }
}

/** The longest time that Node's `setTimeout` takes. */
export const LONGEST_MS: number = 2 ** 31 - 1;

type Clock = Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> & { now(): number };

const real: Clock = { setTimeout, clearTimeout, now };

/** That of the program, which a test may fake. */
const ofTheProgram: Clock = {
  get setTimeout() {
    return globalThis.setTimeout;
  },
  get clearTimeout() {
    return globalThis.clearTimeout;
  },
  now: () => performance.now(),
};

/**
 * Calls `fire` once, `ms` milliseconds later by the monotonic clock and never earlier, and keeps
 * the event loop alive until then. A timer of Infinity never fires and keeps nothing alive.
 */
export class Timer {
  readonly #clock: Clock;
  #timeout: NodeJS.Timeout | undefined;
  #isReferenced = true;

  constructor(ms: number, fire: () => void, clock: Clock = ofTheProgram) {
    this.#clock = clock;
    if (ms === Number.POSITIVE_INFINITY) return;
    const at = clock.now() + ms;
    const arm = (left: number): void => {
      const { setTimeout } = clock; // not as its method: that of a browser's window refuses
      this.#timeout = setTimeout(
        () => {
          const rest = at - clock.now();
          if (rest > 0) arm(rest);
          else fire();
        },
        Math.min(Math.ceil(left), LONGEST_MS),
      );
      if (!this.#isReferenced) this.#timeout.unref();
    };
    arm(ms);
  }

  clear(): void {
    const { clearTimeout } = this.#clock;
    clearTimeout(this.#timeout);
  }

  /** From now on it does not keep the event loop alive. */
  unref(): this {
    this.#isReferenced = false;
    this.#timeout?.unref();
    return this;
  }
}

/** A Timer for what another thread or process has to do in time: no fake timers make that faster. */
export class RealTimer extends Timer {
  constructor(ms: number, fire: () => void) {
    super(ms, fire, real);
  }
}

/**
 * The outcome of `promise`; or, if it is not settled after `ms` milliseconds, what `onLate`
 * returns or throws; or the reason of `signal`, if that is aborted first. The work behind the
 * promise goes on; a later outcome of `promise` is ignored. The caller must check whether `signal`
 * has aborted already.
 *
 * With 0 milliseconds a promise is in time that only microtasks settle; `onLate` is called after a
 * turn of the event loop, so that a loop of such calls starves nothing.
 */
export function within<T, L>(
  ms: number,
  promise: Promise<T>,
  onLate: () => L | PromiseLike<L>,
  signal?: AbortSignal,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      timer?.clear();
      if (signal !== undefined) removeAbortListener(signal, onAbort);
      settle();
    };
    const onAbort = (): void => end(() => reject(reasonOfAbort(signal) as Error));
    const late = (): void =>
      end(() => resolve((ms === 0 ? turn() : Promise.resolve()).then(onLate)));
    const timer = ms === 0 ? undefined : new Timer(ms, late);
    // A Timer of 0 ms fires after a turn of the event loop, in which messages arrive by chance. What
    // a microtask gives to `nextTick` runs before that, when no microtask is left.
    if (timer === undefined) queueMicrotask(() => process.nextTick(late));
    if (signal !== undefined) addAbortListener(signal, onAbort);
    promise.then(
      (value) => end(() => resolve(value)),
      (error: Error) => end(() => reject(error)),
    );
  });
}
