/** When the runs of a looper are due, and the loop that makes them. */

import { now } from '../base/timer.ts';
import type { Attachment } from '../coordinator/attachment.ts';
import { runModule } from '../coordinator/threads/worker-module.ts';
import type { WorkOfModule } from '../coordinator/threads/workers.ts';
import { waitForStop } from '../coordinator/waits.ts';

/**
 * What becomes of the missed runs: those that fell due while an earlier run took too long.
 * `burst`: each missed run is made up for, back to back (TensorFlow's way); `skip`: missed runs
 * are dropped, and the next run is at the next multiple of the interval; `delay`: the interval
 * counts from the end of a run, so no run is ever missed.
 */
export type MissedTicks = 'burst' | 'skip' | 'delay';

export const MISSED_TICKS: readonly MissedTicks[] = ['burst', 'skip', 'delay'];

/**
 * Plain data, which can be sent to a Worker. An interval of 0 means back to back, Infinity
 * means a single run.
 */
export type LooperTimes = { readonly intervalMs: number; readonly missedTicks: MissedTicks };

/**
 * Computes when each run is due, by the same rules as core::LooperSchedule. Due times count from
 * the first run (except with `delay`), whenever the thread woke up, so they do not drift.
 */
export class LooperSchedule {
  readonly #times: LooperTimes;
  #due: number | undefined;

  constructor(times: LooperTimes) {
    this.#times = times;
  }

  /** When the next run is due. To be called once before each run, with the current time. */
  next(nowMs: number): number {
    const { intervalMs, missedTicks } = this.#times;
    if (this.#due === undefined) {
      this.#due = nowMs;
    } else if (missedTicks === 'delay') {
      this.#due = nowMs + intervalMs;
    } else {
      this.#due += intervalMs;
      const late = nowMs - this.#due;
      if (missedTicks === 'skip' && late > 0) {
        const missed = Math.ceil(late / intervalMs); // not finite if the interval is 0 or nearly 0
        this.#due = Number.isFinite(missed) ? this.#due + missed * intervalMs : nowMs;
      }
    }
    return this.#due;
  }
}

/**
 * Calls `run` whenever it is due, until a stop later than generation `since`, even if that stop
 * has been cleared by now. The event loop turns between two runs.
 */
export async function loop(
  attachment: Attachment,
  since: number,
  times: LooperTimes,
  run: () => unknown,
): Promise<void> {
  const schedule = new LooperSchedule(times);
  const stopsWithin = (ms: number): Promise<boolean> =>
    waitForStop(attachment, ms, undefined, since);
  for (;;) {
    const left = schedule.next(now()) - now();
    if (await stopsWithin(Math.max(0, left))) return; // also within 0 ms the event loop turns
    await run();
  }
}

// Runs in the Worker of a LooperThread whose target is given by URL.

/** The `workerData` of the Worker. */
export type LooperWork = WorkOfModule & {
  kind: 'looper';
  /** The name of the LooperThread. */
  name: string;
  args: readonly unknown[];
  times: LooperTimes;
};

export const runLooper = ({ module, name, args, times, since }: LooperWork): Promise<void> =>
  runModule(module, `the LooperThread '${name}'`, (target, attachment) =>
    loop(attachment, since, times, () => target(...args)),
  );
