/**
 * Whether a worker thread answers. A function that has ended may leave its thread busy, with a
 * timer that computes for ever, for example: such a thread begins nothing that it is sent.
 *
 * 1. The worker is asked only while it runs nothing: a function may compute as long as it likes.
 *    It is asked if it has not begun in time what it was sent, and if a call was recalled that it
 *    had not begun. A call that was not begun in time gets more time with the next worker
 *    (`allowLonger`): a thread reads large arguments that are values before it begins their call,
 *    and with the same time the call would go back for ever.
 * 2. From the question to the answer (`isAsked`) the worker is sent no call. At most one question
 *    is on its way, so that an answer is always the answer to the last question.
 * 3. A worker that has not answered within the grace period, and runs nothing then, is ended. Nothing
 *    is lost with it but what functions that have ended have left there.
 * 4. While `#late` waits, nobody has to call `watch` again: a worker that is sent calls all the
 *    time costs one timer in LOOK_MS.
 */

import { Timer, turn } from '../../base/timer.ts';
import { UnavailableError } from '../../errors/errors.ts';
import type { WorkerName } from './channel.ts';

const LOOK_MS = 100;
/**
 * The least time for an answer, also if `cancelGraceMs` is shorter: the worker has done no wrong, and
 * the machine may be busy.
 */
const LEAST_GRACE_MS = 5_000;

export interface AskedWorker {
  /** Whether the worker may be running a function. */
  isAtWork(): boolean;
  /** When (Date.now()) it has to have begun the oldest call that it has not begun. */
  beginsBy(): number | undefined;
  /** Sends the question. */
  ask(): void;
  /** The worker runs nothing, was asked, and has not begun in time what it was sent. */
  onLate(): void;
  /** The worker runs nothing, and has not answered within `graceMs`. */
  onNoAnswer(graceMs: number): void;
}

/** Why a worker that does not answer is ended. `last`: the function that ended there last. */
export function noAnswer({ job, index }: WorkerName, graceMs: number, last?: string): Error {
  const text = `Worker ${job}:${index} runs no function and did not answer within ${graceMs} ms`;
  const why = last === undefined ? '' : `: '${last}', which has ended, may have left it busy`;
  return new UnavailableError(text + why);
}

export class Silence {
  readonly #worker: AskedWorker;
  readonly #graceMs: number;
  #late: Timer | undefined;
  /** Set while the worker is asked. */
  #grace: Timer | undefined;

  constructor(cancelGraceMs: number, worker: AskedWorker) {
    this.#graceMs = Math.max(cancelGraceMs, LEAST_GRACE_MS);
    this.#worker = worker;
  }

  get isAsked(): boolean {
    return this.#grace !== undefined;
  }

  /** To be called when the worker was sent calls, or has ended a function before others. */
  watch(): void {
    if (this.#late !== undefined || this.isAsked) return;
    this.#late = new Timer(LOOK_MS, () => {
      this.#late = undefined;
      this.#look();
    }).unref();
  }

  #look(): void {
    const limit = this.#worker.beginsBy();
    if (limit === undefined || this.isAsked || this.#worker.isAtWork()) return;
    if (Date.now() < limit) {
      this.watch();
      return;
    }
    this.ask();
    this.#worker.onLate();
  }

  /** Asks the worker, unless it is asked already, or at work. */
  ask(): void {
    if (this.isAsked || this.#worker.isAtWork()) return;
    this.#worker.ask();
    this.#await();
  }

  #await(): void {
    const grace = new Timer(this.#graceMs, () => {
      // If this thread was busy itself, the answer may have come, and not been read.
      void turn().then(() => {
        if (this.#grace !== grace) return;
        if (this.#worker.isAtWork()) this.#await();
        else this.#worker.onNoAnswer(this.#graceMs);
      });
    }).unref();
    this.#grace = grace;
  }

  /** The worker has answered, or is gone. */
  end(): void {
    this.#late?.clear();
    this.#late = undefined;
    this.#grace?.clear();
    this.#grace = undefined;
  }
}
