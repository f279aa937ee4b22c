/** The options of a Coordinator and of `join()`: types, defaults and checks. */

import {
  type Checks,
  checkBoolean,
  checkDuration,
  checkOptions,
  checkSignal,
  checkString,
  holds,
  invalidType,
  invalidValue,
  isBag,
  isIterable,
  nameOf,
  unchecked,
} from '../base/arguments.ts';
import { chainOf } from '../base/thrown-value.ts';

/** A class of errors. */
export type ErrorClass = abstract new (...args: any[]) => Error;

/** The options of a Coordinator. */
export type CoordinatorOptions = {
  /** For `explain()` and messages; by default "coordinator-N". */
  name?: string | undefined;
  /**
   * Errors that count as a normal end, by class or by a string that is matched
   * with the error's chain of constructor names, its `name` and its `code`.
   * Default: `[OutOfRangeError]`, as in TensorFlow. With `[]` no error is clean.
   */
  cleanStopErrors?: Iterable<ErrorClass | string> | undefined;
  /** The grace period of `join()` and of disposal, in milliseconds; default 120,000. */
  stopGracePeriodMs?: number | undefined;
};

/** The options of `Coordinator.run`. */
export type RunOptions = CoordinatorOptions & {
  /** The signals that stop the coordinator, as with `stopOnSignals()`; by default none does. */
  stopOnSignals?: readonly NodeJS.Signals[] | undefined;
  /** Whether uncaught errors of this thread stop it, as with `stopOnUncaught()`; default false. */
  stopOnUncaught?: boolean | undefined;
  /**
   * Ends the process if it is alive this many milliseconds after the stop, as with
   * `exitAfterStop()`, also when `run` has ended by then; by default nothing does.
   */
  exitAfterStopMs?: number | undefined;
};

/** The options of `join`. */
export type JoinOptions = {
  /** How long threads may go on after the stop, in milliseconds; default: the coordinator's. */
  stopGracePeriodMs?: number | undefined;
  /** Whether `join()` resolves though threads are alive after the grace period. Default false. */
  ignoreLiveThreads?: boolean | undefined;
  /**
   * Whether each straggler of a StragglersError says where it is: `stack` or `waitState`, as
   * `diagnose()` finds them, within a second after the grace period. Default false.
   */
  stacks?: boolean | undefined;
  /**
   * Emits a warning of the process (`ALLSTOP_SLOW_STOP`) that names the threads which took more
   * milliseconds than this to see the stop, since they ask too seldom; by default none is named.
   */
  warnSeenAfterMs?: number | undefined;
  /**
   * When `signal` aborts, the join rejects with the signal's reason; nothing else changes. By
   * default no signal ends the join.
   */
  signal?: AbortSignal | undefined;
};

export const COORDINATOR_OPTIONS: Checks = {
  name: checkString,
  cleanStopErrors: unchecked,
  stopGracePeriodMs: checkDuration,
};
/** What does, of a coordinator, what an option of `Coordinator.run` does. */
const METHOD_OF = {
  stopOnSignals: 'stopOnSignals',
  stopOnUncaught: 'stopOnUncaught',
  exitAfterStopMs: 'exitAfterStop',
} as const;
export const JOIN_OPTIONS: Checks = {
  stopGracePeriodMs: checkDuration,
  ignoreLiveThreads: checkBoolean,
  stacks: checkBoolean,
  warnSeenAfterMs: checkDuration,
  signal: checkSignal,
};

/** Whether `value` is Error or a class that extends it, of this or another realm. */
export const isErrorClass = (value: unknown): value is ErrorClass =>
  holds(() => {
    if (typeof value !== 'function') return false;
    const { name, prototype } = value as ErrorClass;
    return name === 'Error' || chainOf(prototype).includes('Error');
  });

/** Checks error types. @returns them as strings, which other threads and native code can compare */
export function checkErrorTypes(name: string, errors: unknown): string[] {
  if (!isIterable(errors)) {
    const remedy = isErrorClass(errors) ? `write [${nameOf(errors)}]` : undefined;
    const expected = 'an array, or another iterable, of error classes and strings';
    throw invalidType(name, expected, errors, remedy);
  }
  return Array.from(errors, (error) => {
    if (typeof error === 'string' && error !== '') return error;
    const className = isErrorClass(error) ? nameOf(error) : undefined;
    if (className !== undefined) return className;
    throw invalidType(`${name}[]`, 'a named error class or a string', error);
  });
}

type CheckedOptions = {
  name: string | undefined;
  types: string[] | undefined;
  graceMs: number | undefined;
};

/** @throws TypeError: an option of `Coordinator.run` was given to a Coordinator */
function refuseRunOptions(options: object): void {
  for (const [option, method] of Object.entries(METHOD_OF)) {
    if (method !== option && holds(() => Object.hasOwn(options, method))) {
      throw invalidValue(`"options.${method}" is a method of a coordinator: call ${method}()`);
    }
    if (!holds(() => Object.hasOwn(options, option))) continue;
    throw invalidValue(
      `"options.${option}" is an option of Coordinator.run(). Of a coordinator, call ${method}()`,
    );
  }
}

export function checkCoordinatorOptions(options: CoordinatorOptions | undefined): CheckedOptions {
  const known = COORDINATOR_OPTIONS;
  if (isBag(options)) refuseRunOptions(options);
  const { name, cleanStopErrors, stopGracePeriodMs } = checkOptions('options', options, known);
  const types =
    cleanStopErrors === undefined
      ? undefined
      : checkErrorTypes('options.cleanStopErrors', cleanStopErrors);
  return { name, types, graceMs: stopGracePeriodMs };
}
