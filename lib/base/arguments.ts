/** Checks of arguments, with the error classes, codes and wording of Node's own checks. */

import { inspect } from 'node:util';

function received(value: unknown): string {
  if (value === null || value === undefined) return `Received ${value}`;
  if (typeof value === 'function') return `Received function ${value.name}`;
  if (typeof value === 'object') {
    const name: unknown = value.constructor?.name;
    if (typeof name === 'string' && name !== '') return `Received an instance of ${name}`;
    return `Received ${inspect(value, { depth: -1 })}`;
  }
  const text = inspect(value, { colors: false });
  return `Received type ${typeof value} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
}

/** The `TypeError` for an argument of a wrong type. `expected` reads like "of type number". */
export function invalidType(name: string, expected: string, value: unknown): TypeError {
  let got: string;
  try {
    got = received(value);
  } catch {
    got = `Received a value of type ${typeof value}`; // a proxy's trap threw
  }
  return wrongType(name, expected, got);
}

/** As `invalidType`, for secrets: the message has the type of the value, not the value. */
export function invalidSecret(name: string, expected: string, value: unknown): TypeError {
  const got = value === null ? 'null' : `a value of type ${typeof value}`;
  return wrongType(name, expected, `Received ${got}`);
}

function wrongType(name: string, expected: string, got: string): TypeError {
  const what = name.includes('.') ? 'property' : 'argument';
  const error = new TypeError(`The "${name}" ${what} must be ${expected}. ${got}`);
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}

/** The `RangeError` for an argument that is out of range. `expected` reads like ">= 0". */
export function outOfRange(name: string, expected: string, value: unknown): RangeError {
  const error = new RangeError(
    `The value of "${name}" is out of range. It must be ${expected}. Received ${inspect(value)}`,
  );
  return Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
}

/** Whether `test` returns true; false if it throws, as a proxy or a getter may make it. */
export function holds(test: () => boolean): boolean {
  try {
    return test();
  } catch {
    return false;
  }
}

/** The `name` of a thread, a function or a class. @returns undefined if there is none */
export function nameOf(value: object): string | undefined {
  let name: unknown;
  try {
    name = (value as { name?: unknown }).name;
  } catch {
    return undefined;
  }
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Whether `value` is an iterable object. False for a string: no caller means its characters. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return holds(
    () =>
      typeof value === 'object' &&
      value !== null &&
      typeof (value as Iterable<unknown>)[Symbol.iterator] === 'function',
  );
}

/** Checks a duration in milliseconds: a number from 0 to Infinity. */
export function checkDuration(name: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (!(value >= 0)) throw outOfRange(name, '>= 0 and not NaN', value);
}

/** Checks an integer from `least` to `most`. */
export function checkInteger(name: string, value: unknown, least: number, most: number): void {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw outOfRange(name, `an integer >= ${least} and <= ${most}`, value);
  }
}

export function checkString(name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw invalidType(name, 'of type string', value);
}

export function checkBoolean(name: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw invalidType(name, 'of type boolean', value);
}

export function checkFunction(name: string, value: unknown): asserts value is Function {
  if (typeof value !== 'function') throw invalidType(name, 'of type function', value);
}

/** Whether `value` is an object with named fields: no array, no function. */
export function isBag(value: unknown): value is object {
  return holds(() => typeof value === 'object' && value !== null && !Array.isArray(value));
}

/** Options: an object, or undefined, which gives an empty one. */
export function checkOptions<T extends object>(name: string, value: T | undefined): Partial<T> {
  if (value === undefined) return {};
  if (!isBag(value)) throw invalidType(name, 'of type object', value);
  return value;
}

/** Checks an AbortSignal by its shape, as Node does: those of other realms and polyfills pass. */
export function checkSignal(name: string, value: unknown): asserts value is AbortSignal {
  const isSignal = holds(
    () =>
      typeof value === 'object' &&
      value !== null &&
      'aborted' in value &&
      'addEventListener' in value &&
      typeof value.addEventListener === 'function' &&
      'removeEventListener' in value &&
      typeof value.removeEventListener === 'function',
  );
  if (!isSignal) throw invalidType(name, 'an instance of AbortSignal', value);
}
