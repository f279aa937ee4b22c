/** Checks of arguments, with the error classes, codes and wording of Node's own checks. */

import { inspect } from 'node:util';
import { attempt, fieldOf } from './thrown-value.ts';

function received(value: unknown): string {
  if (value === null || value === undefined) return `Received ${value}`;
  if (typeof value === 'function') {
    return value.name === '' ? 'Received a function' : `Received function ${value.name}`;
  }
  if (typeof value === 'object') {
    const name: unknown = value.constructor?.name;
    if (typeof name === 'string' && name !== '') return `Received an instance of ${name}`;
    return `Received ${inspect(value, { depth: -1 })}`;
  }
  const text = inspect(value, { colors: false });
  return `Received type ${typeof value} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
}

/**
 * The `TypeError` for an argument of a wrong type. `expected` reads like "of type number", `remedy`
 * like "write 'thread'".
 */
export function invalidType(
  name: string,
  expected: string,
  value: unknown,
  remedy?: string,
): TypeError {
  // A proxy's trap may throw.
  const got = attempt(() => received(value)) ?? `Received a value of type ${typeof value}`;
  return wrongType(name, expected, got, remedy);
}

/** As `invalidType`, for secrets: the message has the type of the value, not the value. */
export function invalidSecret(name: string, expected: string, value: unknown): TypeError {
  const got = value === null ? 'null' : `a value of type ${typeof value}`;
  return wrongType(name, expected, `Received ${got}`);
}

function wrongType(name: string, expected: string, got: string, remedy?: string): TypeError {
  const what = /[.[]/.test(name) ? 'property' : 'argument';
  const isTwin = got === `Received ${expected}`;
  const why = isTwin ? ' of another copy of the package, or of another realm: run `npm ls`' : '';
  const todo = remedy === undefined ? '' : `: ${remedy}`;
  const error = new TypeError(`The "${name}" ${what} must be ${expected}. ${got}${why}${todo}`);
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
  const name = fieldOf(value, 'name');
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Whether `value` is an iterable object. False for a string: no caller means its characters. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && typeof fieldOf(value, Symbol.iterator) === 'function';
}

/** Whether `value` is an array. */
export const isList = (value: unknown): value is unknown[] => holds(() => Array.isArray(value));

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

export function checkFunctionOrUrl(
  name: string,
  value: unknown,
  expected = 'a function or an instance of URL',
): asserts value is URL | ((...args: any[]) => unknown) {
  if (typeof value === 'function' || holds(() => value instanceof URL)) return;
  throw invalidType(name, expected, value);
}

/** Whether `value` is an object with named fields: no array, no function. */
export function isBag(value: unknown): value is object {
  return holds(() => typeof value === 'object' && value !== null && !Array.isArray(value));
}

/**
 * Without a prototype, as Node's own: `Object.prototype` may have been given a `timeoutMs`. Options
 * inherit from it: V8 makes hash tables of objects that have no prototype at all.
 */
const NO_OPTIONS: object = Object.freeze(Object.create(null));

/** Throws if the value, of an option that is given, is wrong. `name`: "options.timeoutMs". */
type Check = (name: string, value: unknown) => void;

/** All options of a call, with the check of each. */
export type Checks = Readonly<Record<string, Check>>;

/** The check of an option that its reader checks. */
export const unchecked: Check = () => {};

/** Options that Node checks, to which they are passed on. `names`: separated by spaces. */
export const ofNode = (names: string): Checks =>
  Object.fromEntries(names.split(' ').map((name) => [name, unchecked]));

export const integerFrom =
  (least: number, most: number = Number.MAX_SAFE_INTEGER): Check =>
  (name, value) =>
    checkInteger(name, value, least, most);

export const oneOf =
  (...values: readonly string[]): Check =>
  (name, value) =>
    checkOneOf(name, values, value);

/**
 * Options: an object, or undefined, which gives an empty one. Each is read once: those of the object
 * and those that it inherits, from a class of the program for example, but not from
 * `Object.prototype`.
 */
export function checkOptions<T extends object>(
  name: string,
  value: T | undefined,
  checks: Checks,
): Partial<T> {
  if (value === undefined) return NO_OPTIONS;
  if (!isBag(value)) throw invalidType(name, 'of type object', value);
  const options: Record<string, unknown> = Object.create(NO_OPTIONS);
  for (const option of namesGiven(value, checks, name)) {
    const given: unknown = Reflect.get(value, option);
    if (given !== undefined) checks[option]?.(`${name}.${option}`, given);
    options[option] = given;
  }
  return options as Partial<T>;
}

/** The options that `value` has, as `checkOptions` says. @throws as `knownOptions` */
function namesGiven(value: object, checks: Checks, where: string): readonly string[] {
  const own = ownNames(value);
  // Each call comes here: what may be given is listed only if something else is.
  if (own?.every((name) => Object.hasOwn(checks, name))) return own;
  const known = Object.keys(checks);
  knownOptions(value, known, where);
  const given = known.filter((name) => name in value && !isOfAllObjects(value, name));
  // An instance of a class of the platform in the place of options: a signal, a Map.
  if (given.length === 0 && Symbol.toStringTag in value) {
    const isMeant = isSignal(value) && known.includes('signal');
    const remedy = isMeant ? 'pass it as { signal }' : undefined;
    throw invalidType(where, 'an object with options', value, remedy);
  }
  return given;
}

/** @returns undefined if it inherits from the program, or is a proxy whose trap throws */
function ownNames(value: object): string[] | undefined {
  try {
    const isPlain = Object.getPrototypeOf(value) === Object.prototype;
    return isPlain ? Object.getOwnPropertyNames(value) : undefined;
  } catch {
    return undefined;
  }
}

function isOfAllObjects(given: object, name: string): boolean {
  if (!Object.hasOwn(Object.prototype, name)) return false;
  let owner: object | null = given;
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner);
  return owner === Object.prototype;
}

/**
 * Checks the names of options, so that a typo is not ignored. `where`: the argument that holds them,
 * "options" for example.
 *
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`), which names the nearest known option, if one is near,
 * and lists them all
 */
export function knownOptions(options: object, known: readonly string[], where: string): void {
  // A proxy's trap that throws throws also when the options are read.
  for (const name of attempt(() => Object.keys(options)) ?? []) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const question = near === undefined ? '' : ` Did you mean '${near}'?`;
    const listed = known.map((each) => `'${each}'`).join(', ');
    throw invalidValue(
      `There is no option "${where}.${name}".${question} The options are ${listed}`,
    );
  }
}

/** What other packages name so: no letters lead from one name to the other. */
const OF_OTHERS: Readonly<Record<string, string>> = {
  threads: 'workers',
  maxthreads: 'workers',
  poolsize: 'workers',
  size: 'workers',
  filename: 'module',
  maxqueue: 'maxQueued',
  attempts: 'retries',
  retry: 'retries',
  backoff: 'retryDelayMs',
  deadline: 'timeoutMs',
  highwatermark: 'capacity',
  workers: 'minWorkers',
};

/**
 * The one of `known` that begins as `name` does, else the one that takes the fewest edits to become
 * `name`, whatever the case of letters. Undefined if none is near: half of the longer name would
 * have to be changed, and neither is `name` left when letters of the known one are taken out, nor
 * does it begin with the known one.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const typed = name.toLowerCase();
  if (typed === '') return undefined;
  const elsewhere = OF_OTHERS[typed];
  if (elsewhere !== undefined && known.includes(elsewhere)) return elsewhere;
  const [near] = known
    .map((each) => {
      const meant = each.toLowerCase();
      const edits = meant.startsWith(typed) ? 0 : editDistance(typed, meant);
      const isShorter = edits === meant.length - typed.length; // only letters to insert
      return {
        each,
        edits,
        isNear:
          isShorter || typed.startsWith(meant) || edits <= Math.max(typed.length, meant.length) / 2,
      };
    })
    .filter(({ isNear }) => isNear)
    .toSorted((one, other) => one.edits - other.edits);
  return near?.each;
}

/**
 * The end of a message about a name that does not exist: ` Did you mean 'square'?`. Empty if no name
 * of `known` is near: whatever the case of letters, it may take an edit for three letters.
 */
export function didYouMean(name: string, known: readonly string[]): string {
  const [near] = known
    .map((each) => ({ each, edits: editDistance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, edits }) => edits <= Math.round(Math.max(name.length, each.length) / 3))
    .toSorted((one, other) => one.edits - other.edits);
  return near === undefined ? '' : ` Did you mean '${near.each}'?`;
}

/** How many letters have to be inserted, left out, replaced, or exchanged with the next one. */
function editDistance(from: string, to: string): number {
  let twoAbove: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 0; row < from.length; row++) {
    const line = [row + 1];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (from[row] === to[column - 1] ? 0 : 1);
      const isExchange = from[row] === to[column - 2] && from[row - 1] === to[column - 1];
      const exchanged = isExchange ? (twoAbove[column - 2] ?? 0) + 1 : replaced;
      const other = Math.min((above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1);
      line.push(Math.min(replaced, exchanged, other));
    }
    twoAbove = above;
    above = line;
  }
  return above[to.length] ?? 0;
}

/** Checks that `value` is one of a few strings. */
export function checkOneOf<T extends string>(
  name: string,
  values: readonly T[],
  value: unknown,
): asserts value is T {
  const listed = values.map((each) => `'${each}'`).join(', ');
  if (typeof value !== 'string') throw invalidType(name, `one of ${listed}`, value);
  if (values.some((each) => each === value)) return;
  throw invalidValue(`The "${name}" property must be one of ${listed}. ${received(value)}`);
}

export function invalidValue(message: string): TypeError {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_VALUE' });
}

/** `how`: "a Variable is made by cluster.variable(name, initial)" */
export function illegalConstructor(how: string): TypeError {
  const error = new TypeError(`Illegal constructor: ${how}`);
  return Object.assign(error, { code: 'ERR_ILLEGAL_CONSTRUCTOR' });
}

/** By its shape, as Node does: those of other realms and polyfills are AbortSignals, too. */
export function isSignal(value: unknown): value is AbortSignal {
  return holds(
    () =>
      typeof value === 'object' &&
      value !== null &&
      'aborted' in value &&
      'addEventListener' in value &&
      typeof value.addEventListener === 'function' &&
      'removeEventListener' in value &&
      typeof value.removeEventListener === 'function',
  );
}

export function checkSignal(name: string, value: unknown): asserts value is AbortSignal {
  if (!isSignal(value)) throw invalidType(name, 'an instance of AbortSignal', value);
}
