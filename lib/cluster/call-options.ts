/** The options of calls: checked at the door, so that a refused call changes nothing. */

import {
  checkDuration,
  checkOptions,
  checkSignal,
  invalidType,
  outOfRange,
} from '../base/arguments.ts';
import type { Limits } from './closures/time-limits.ts';
import type { ScheduleOptions } from './signatures.ts';

const OF_A_CALL = ['signal', 'timeoutMs', 'retries'] satisfies (keyof ScheduleOptions)[];
const OF_A_WAIT = ['signal', 'timeoutMs'];

/** A number of things: an integer from `least` on, or Infinity. */
export function checkCount(name: string, value: unknown, least: number): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
  if (!isCount || value < least)
    throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
}

/** @throws TypeError, RangeError */
export function checkCallOptions(
  options: ScheduleOptions | undefined,
  defaults: { retries: number },
): { limits: Limits; retries: number } {
  const given = checkOptions('options', options, OF_A_CALL);
  const { retries = defaults.retries } = given;
  checkCount('options.retries', retries, 0);
  return { limits: checkLimits(given), retries };
}

export type WaitOptions = {
  /** Milliseconds (Infinity). */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
};

/** @throws TypeError, RangeError */
export function checkWaitOptions(options: WaitOptions | undefined): Limits {
  return checkLimits(checkOptions('options', options, OF_A_WAIT));
}

function checkLimits({ signal, timeoutMs = Number.POSITIVE_INFINITY }: WaitOptions): Limits {
  checkDuration('options.timeoutMs', timeoutMs);
  if (signal !== undefined) checkSignal('options.signal', signal);
  return { signal, timeoutMs, leftMs: timeoutMs };
}
