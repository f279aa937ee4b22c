/**
 * The options of calls: checked at the door, so that a refused call changes nothing. What a call is
 * given to call back is called in the async context of the call, whichever worker's message it is
 * that asks for it.
 */

import { AsyncResource } from 'node:async_hooks';
import {
  type Checks,
  checkBoolean,
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  checkString,
  integerFrom,
  invalidType,
  isBag,
  oneOf,
  outOfRange,
  unchecked,
} from '../../base/arguments.ts';
import { isOfType } from '../../base/thrown-value.ts';
import { checkErrorTypes, isErrorClass } from '../../coordinator/coordinator-options.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { activeContext } from '../../telemetry/spans.ts';
import type { CallTerms, RetryRule } from '../queue/call.ts';
import { nowhere, Placement, PRIORITIES } from '../queue/call-lines.ts';
import { type Limits, UNLIMITED } from '../queue/time-limits.ts';
import type { CallOptions, MapOptions, ScheduleOptions } from './signatures.ts';

/** Checks an integer from `least` on, or Infinity. */
export const countFrom =
  (least: number) =>
  (name: string, value: unknown): void => {
    if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
    const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
    if (!isCount || value < least) {
      throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
    }
  };

/**
 * `fn`, which is called in the async context that is now. (What `AsyncLocalStorage.bind` returns has
 * properties that are defined for each call.)
 */
function inThisContext<A extends unknown[], R>(fn: (...args: A) => R): (...args: A) => R {
  const here = new AsyncResource('allstop');
  return (...args) => here.runInAsyncScope(fn, undefined, ...args);
}

function checkFinite(name: string, value: unknown): void {
  checkDuration(name, value);
  if (value === Number.POSITIVE_INFINITY) throw outOfRange(name, 'finite', value);
}

const OF_A_WAIT = { signal: checkSignal, timeoutMs: checkDuration };
const OF_A_CALL: Checks = {
  ...OF_A_WAIT,
  runTimeoutMs: checkDuration,
  retries: countFrom(0),
  retryOn: unchecked,
  retryDelayMs: (name, value) => {
    if (typeof value !== 'function') checkFinite(name, value);
  },
  priority: oneOf(...PRIORITIES),
  worker: integerFrom(0),
  resources: (name, value) => {
    if (!isBag(value)) throw invalidType(name, 'of type object', value);
    for (const [resource, amount] of Object.entries(value)) {
      checkFinite(`${name}.${resource}`, amount);
    }
  },
  onProgress: checkFunction,
};

/** The options of a call of whichever method, with their defaults. */
export type CheckedOptions = CallTerms & {
  limits: Limits;
  /** Is given each value that the function reports. */
  onProgress?: ((value: unknown, item?: unknown) => unknown) | undefined;
  /** The key under which the result is kept. */
  key?: string | undefined;
  /** The hash of the arguments of a call with a key, as they were when it was made. */
  hash?: string | undefined;
  /** It waited outside the queue, since before `close`. */
  isEarlier?: boolean;
};

export type CallDefaults = {
  retries: number;
  /** Why there will never be a worker for this placement; undefined if there may be one. */
  whyNowhere(placement: Placement): string | undefined;
};

/** @throws TypeError, RangeError */
export const checkCallOptions = (
  options: ScheduleOptions | undefined,
  defaults: CallDefaults,
): CheckedOptions =>
  optionsOfCall(
    options === undefined ? options : checkOptions('options', options, OF_A_CALL),
    defaults,
  );

/**
 * All are made here, with the properties in one order, so that V8 keeps one hidden class.
 *
 * @param given - checked, each by itself. @throws RangeError, InvalidArgumentError
 */
function optionsOfCall(
  given: Partial<CallOptions> | undefined,
  defaults: CallDefaults,
): CheckedOptions {
  if (given === undefined) {
    return {
      limits: UNLIMITED,
      retries: defaults.retries,
      retryRule: undefined,
      runTimeoutMs: undefined,
      priority: 'normal',
      placement: undefined,
      context: activeContext(),
      onProgress: undefined,
      key: undefined,
    };
  }
  const { runTimeoutMs = Infinity, onProgress } = given;
  const placement = Placement.of(given.worker, given.resources);
  checkPlacement(placement, defaults);
  return {
    limits: limitsOf(given),
    retries: given.retries ?? defaults.retries,
    retryRule: retryRuleOf(given),
    runTimeoutMs: runTimeoutMs === Infinity ? undefined : runTimeoutMs,
    priority: given.priority ?? 'normal',
    placement,
    context: activeContext(),
    onProgress: onProgress && inThisContext(onProgress),
    key: given.key,
  };
}

/** @throws TypeError, RangeError, InvalidArgumentError */
function retryRuleOf({
  retryOn,
  retryDelayMs: given,
}: Partial<ScheduleOptions>): RetryRule | undefined {
  if (retryOn === undefined) {
    if (given === undefined) return undefined;
    throw new InvalidArgumentError(
      'options.retryDelayMs is for options.retryOn, which is not given: after a death the function runs again at once',
    );
  }
  const retryDelayMs = given ?? 0;
  const isRule = typeof retryOn === 'function' && !isErrorClass(retryOn);
  const isNamed = isRule ? retryOn : named(retryOn);
  return inThisContext((error, attempt) => {
    const again: unknown = isNamed(error, attempt);
    checkBoolean('options.retryOn(error, attempt)', again);
    if (!again) return undefined;
    const delayMs = typeof retryDelayMs === 'function' ? retryDelayMs(attempt) : retryDelayMs;
    checkFinite('options.retryDelayMs(attempt)', delayMs);
    return delayMs;
  });
}

function named(given: unknown): (error: unknown) => boolean {
  const names = checkErrorTypes('options.retryOn', given);
  return (error) => isOfType(error, names);
}

const OF_A_RUN: Checks = { ...OF_A_CALL, key: checkString };

/** @throws TypeError, RangeError */
export const checkRunOptions = (
  options: CallOptions | undefined,
  defaults: CallDefaults,
): CheckedOptions =>
  optionsOfCall(
    options === undefined ? options : checkOptions('options', options, OF_A_RUN),
    defaults,
  );

/** @throws RangeError: there will never be a worker for it */
export function checkPlacement(
  placement: Placement | undefined,
  { whyNowhere }: Pick<CallDefaults, 'whyNowhere'>,
): void {
  const why = placement === undefined ? undefined : whyNowhere(placement);
  if (placement !== undefined && why !== undefined) throw nowhere(placement, why);
}

const OF_A_MAP: Checks = {
  ...OF_A_CALL,
  concurrency: countFrom(1),
  ordered: checkBoolean,
  onError: oneOf('throw', 'settle'),
  key: checkFunction,
};

export type CheckedMapOptions = {
  concurrency: number | undefined;
  ordered: boolean;
  settles: boolean;
  key: MapOptions['key'];
  ofCalls: CheckedOptions;
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
  return {
    concurrency,
    ordered,
    settles: onError === 'settle',
    key: key && inThisContext(key),
    ofCalls: optionsOfCall(ofCalls, defaults),
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
  return limitsOf(checkOptions('options', options, OF_A_WAIT));
}

const limitsOf = ({ signal, timeoutMs = Infinity }: WaitOptions): Limits =>
  signal === undefined && timeoutMs === Infinity
    ? UNLIMITED
    : { signal, timeoutMs, leftMs: timeoutMs };
