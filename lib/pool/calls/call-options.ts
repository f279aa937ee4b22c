/**
 * The options of calls: checked at the door, so that a refused call changes nothing. What a call is
 * given to call back is called in the async context of the call, whichever worker's message it is
 * that asks for it.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkInteger,
  checkOneOf,
  checkOptions,
  checkSignal,
  checkString,
  invalidType,
  isBag,
  outOfRange,
} from '../../base/arguments.ts';
import { isOfType } from '../../base/thrown-value.ts';
import { checkErrorTypes, type ErrorClass } from '../../coordinator/coordinator-options.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { activeContext } from '../../telemetry/spans.ts';
import type { CallTerms, RetryRule } from '../queue/call.ts';
import { PRIORITIES, type Priority } from '../queue/lines/call-lines.ts';
import { nowhere, Placement } from '../queue/lines/placement.ts';
import { type Limits, UNLIMITED } from '../queue/time-limits.ts';
import type { CallOptions, MapOptions, ScheduleOptions } from './signatures.ts';

const OF_A_CALL = [
  'signal',
  'timeoutMs',
  'runTimeoutMs',
  'retries',
  'retryOn',
  'retryDelayMs',
  'priority',
  'worker',
  'resources',
  'onProgress',
] satisfies (keyof ScheduleOptions)[];
const OF_A_WAIT = ['signal', 'timeoutMs'];

/** A number of things: an integer from `least` on, or Infinity. */
export function checkCount(name: string, value: unknown, least: number): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
  if (!isCount || value < least)
    throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
}

/** The options of a call, checked, with their defaults. */
export type CheckedCallOptions = {
  limits: Limits;
  retries: number;
  retryRule: RetryRule | undefined;
  runTimeoutMs: number | undefined;
  priority: Priority;
  placement: Placement | undefined;
  onProgress: ScheduleOptions['onProgress'];
  /** Of OpenTelemetry, for the span of the call. */
  context: unknown;
};

/** The options of a call of whichever method, with their defaults. */
export type CheckedOptions = CallTerms & {
  limits: Limits;
  /** Is given each value that the function reports. */
  onProgress?: ((value: unknown, item?: unknown) => void) | undefined;
  /** The key under which the result is kept. */
  key?: string | undefined;
  /** The hash of the arguments of a call with a key, as they were when it was made. */
  hash?: string | undefined;
};

export type CallDefaults = {
  retries: number;
  /** Why there will never be a worker for this placement; undefined if there may be one. */
  whyNowhere(placement: Placement): string | undefined;
};

/** @throws TypeError, RangeError */
export function checkCallOptions(
  options: ScheduleOptions | undefined,
  defaults: CallDefaults,
): CheckedCallOptions {
  if (options === undefined) {
    return {
      limits: UNLIMITED,
      retries: defaults.retries,
      retryRule: undefined,
      runTimeoutMs: undefined,
      priority: 'normal',
      placement: undefined,
      context: activeContext(),
      onProgress: undefined,
    };
  }
  const given = checkOptions('options', options, OF_A_CALL);
  const { retries = defaults.retries, priority = 'normal', onProgress } = given;
  checkCount('options.retries', retries, 0);
  checkOneOf('options.priority', PRIORITIES, priority);
  if (onProgress !== undefined) checkFunction('options.onProgress', onProgress);
  const placement = placementOf(given);
  checkPlacement(placement, defaults);
  const limits = checkLimits(given);
  const runTimeoutMs = checkRunTimeout(given);
  const retryRule = retryRuleOf(given);
  const ofCall = {
    limits,
    retries,
    retryRule,
    runTimeoutMs,
    priority,
    placement,
    context: activeContext(),
  };
  return { ...ofCall, onProgress: onProgress && AsyncLocalStorage.bind(onProgress) };
}

/** @returns undefined: it may run for ever */
function checkRunTimeout({
  runTimeoutMs = Infinity,
}: Partial<ScheduleOptions>): number | undefined {
  checkDuration('options.runTimeoutMs', runTimeoutMs);
  return runTimeoutMs === Infinity ? undefined : runTimeoutMs;
}

/** @throws TypeError, RangeError, InvalidArgumentError */
function retryRuleOf({
  retryOn,
  retryDelayMs: given,
}: Partial<ScheduleOptions>): RetryRule | undefined {
  const retryDelayMs = given ?? 0;
  if (typeof retryDelayMs !== 'function') checkDelay('options.retryDelayMs', retryDelayMs);
  if (retryOn === undefined) {
    if (given === undefined) return undefined;
    throw new InvalidArgumentError(
      'options.retryDelayMs is for options.retryOn, which is not given: after a death the function runs again at once',
    );
  }
  const isNamed = typeof retryOn === 'function' ? retryOn : oneOf(retryOn);
  return AsyncLocalStorage.bind((error, attempt) => {
    const again: unknown = isNamed(error, attempt);
    checkBoolean('options.retryOn(error, attempt)', again);
    if (!again) return undefined;
    const delayMs = typeof retryDelayMs === 'function' ? retryDelayMs(attempt) : retryDelayMs;
    checkDelay('options.retryDelayMs(attempt)', delayMs);
    return delayMs;
  });
}

function oneOf(given: Iterable<ErrorClass | string>): (error: unknown) => boolean {
  const named = checkErrorTypes('options.retryOn', given);
  return (error) => isOfType(error, named);
}

function checkDelay(name: string, value: unknown): void {
  checkDuration(name, value);
  if (value === Number.POSITIVE_INFINITY) throw outOfRange(name, 'finite', value);
}

const OF_A_RUN = [...OF_A_CALL, 'key'] satisfies (keyof CallOptions)[];

/** @throws TypeError, RangeError */
export function checkRunOptions(
  options: CallOptions | undefined,
  defaults: CallDefaults,
): CheckedCallOptions & { key?: string | undefined } {
  if (options === undefined) return checkCallOptions(undefined, defaults);
  const { key, ...ofCall } = checkOptions('options', options, OF_A_RUN);
  if (key !== undefined) checkString('options.key', key);
  return { ...checkCallOptions(ofCall, defaults), key };
}

/** @throws TypeError, RangeError: `worker` or `resources` is not valid */
function placementOf({ worker, resources }: Partial<ScheduleOptions>): Placement | undefined {
  if (worker !== undefined) checkInteger('options.worker', worker, 0, Number.MAX_SAFE_INTEGER);
  if (resources !== undefined) {
    if (!isBag(resources)) throw invalidType('options.resources', 'of type object', resources);
    for (const [name, amount] of Object.entries(resources)) {
      const what = `options.resources.${name}`;
      checkDuration(what, amount);
      if (amount === Number.POSITIVE_INFINITY) throw outOfRange(what, 'finite', amount);
    }
  }
  return Placement.of(worker, resources);
}

/** @throws RangeError: there will never be a worker for it */
export function checkPlacement(
  placement: Placement | undefined,
  { whyNowhere }: Pick<CallDefaults, 'whyNowhere'>,
): void {
  const why = placement === undefined ? undefined : whyNowhere(placement);
  if (placement !== undefined && why !== undefined) throw nowhere(placement, why);
}

const OF_A_MAP = [
  ...OF_A_CALL,
  'concurrency',
  'ordered',
  'onError',
  'key',
] satisfies (keyof MapOptions)[];

export type CheckedMapOptions = {
  concurrency: number | undefined;
  ordered: boolean;
  settles: boolean;
  key: MapOptions['key'];
  ofCalls: CheckedCallOptions;
};

/** @throws TypeError, RangeError */
export function checkMapOptions(
  options: MapOptions | undefined,
  defaults: CallDefaults,
): CheckedMapOptions {
  const {
    concurrency,
    ordered = true,
    onError = 'throw',
    key,
    ...ofCalls
  } = checkOptions('options', options, OF_A_MAP);
  if (concurrency !== undefined) checkCount('options.concurrency', concurrency, 1);
  checkBoolean('options.ordered', ordered);
  checkOneOf('options.onError', ['throw', 'settle'], onError);
  if (key !== undefined) checkFunction('options.key', key);
  const settles = onError === 'settle';
  return {
    concurrency,
    ordered,
    settles,
    key: key && AsyncLocalStorage.bind(key),
    ofCalls: checkCallOptions(ofCalls, defaults),
  };
}

/** The options of `join` of a cluster. */
export type WaitOptions = {
  /** Milliseconds after which the wait rejects with a DeadlineExceededError. Default: Infinity. */
  timeoutMs?: number | undefined;
  /** When it aborts, the wait rejects with the signal's reason. Default: no signal. */
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
