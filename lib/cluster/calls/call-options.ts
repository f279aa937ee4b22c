/** The options of calls: checked at the door, so that a refused call changes nothing. */

import {
  checkBoolean,
  checkDuration,
  checkOneOf,
  checkOptions,
  checkSignal,
  invalidType,
  outOfRange,
} from '../../base/arguments.ts';
import type { Limits } from '../closures/time-limits.ts';
import type { MapOptions, ScheduleOptions } from './signatures.ts';

const OF_A_CALL = ['signal', 'timeoutMs', 'retries'] satisfies (keyof ScheduleOptions)[];
const OF_A_WAIT = ['signal', 'timeoutMs'];

/** A number of things: an integer from `least` on, or Infinity. */
export function checkCount(name: string, value: unknown, least: number): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
  if (!isCount || value < least)
    throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
}

/** The options of a call, checked, with their defaults. */
export type CallOptions = { limits: Limits; retries: number };

/** @throws TypeError, RangeError */
export function checkCallOptions(
  options: ScheduleOptions | undefined,
  defaults: { retries: number },
): CallOptions {
  const given = checkOptions('options', options, OF_A_CALL);
  const { retries = defaults.retries } = given;
  checkCount('options.retries', retries, 0);
  return { limits: checkLimits(given), retries };
}

const OF_A_MAP = [...OF_A_CALL, 'concurrency', 'ordered', 'onError'] satisfies (keyof MapOptions)[];

/** @throws TypeError, RangeError */
export function checkMapOptions(
  options: MapOptions | undefined,
  defaults: { retries: number },
): { concurrency: number | undefined; ordered: boolean; settles: boolean; ofCalls: CallOptions } {
  const {
    concurrency,
    ordered = true,
    onError = 'throw',
    ...ofCalls
  } = checkOptions('options', options, OF_A_MAP);
  if (concurrency !== undefined) checkCount('options.concurrency', concurrency, 1);
  checkBoolean('options.ordered', ordered);
  checkOneOf('options.onError', ['throw', 'settle'], onError);
  const settles = onError === 'settle';
  return { concurrency, ordered, settles, ofCalls: checkCallOptions(ofCalls, defaults) };
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
