/** When the runs of a looper are due. The same rules as core::LooperSchedule. */

/**
 * What becomes of the runs that were due while another one took too long. `burst`: made
 * up for, back to back (TensorFlow's); `skip`: dropped, the next one is at the next
 * multiple of the interval; `delay`: none is missed, the interval counts from the end of
 * a run.
 */
export type MissedTicks = 'burst' | 'skip' | 'delay';

export const MISSED_TICKS: readonly MissedTicks[] = ['burst', 'skip', 'delay'];

/** Plain data, which a worker can be given. Interval 0: back to back. Infinity: one run. */
export type LooperTimes = { readonly intervalMs: number; readonly missedTicks: MissedTicks };

/** Counts on from the first run and not from when somebody woke up, so nothing drifts. */
export class LooperSchedule {
  readonly #times: LooperTimes;
  #due: number | undefined;

  constructor(times: LooperTimes) {
    this.#times = times;
  }

  /** When the next run is due, asked before each one, at `now`. */
  next(now: number): number {
    const { intervalMs, missedTicks } = this.#times;
    if (this.#due === undefined) {
      this.#due = now;
    } else if (missedTicks === 'delay') {
      this.#due = now + intervalMs;
    } else {
      this.#due += intervalMs;
      const late = now - this.#due;
      if (missedTicks === 'skip' && late > 0) {
        const missed = Math.ceil(late / intervalMs); // of an interval of 0, or nearly, no number
        this.#due = Number.isFinite(missed) ? this.#due + missed * intervalMs : now;
      }
    }
    return this.#due;
  }
}
