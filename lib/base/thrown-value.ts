/**
 * Gives objects properties, and reads thrown values, which may be anything: getters and proxies
 * throw, `name` may be a number, `constructor` may lie. A function that reads throws only if its
 * comment says so.
 */

import { inspect, types } from 'node:util';

/**
 * Gives `object` an own property. An assignment would not do for every key: `__proto__` has a
 * setter, and an inherited property may be read-only.
 */
export function define(object: object, key: PropertyKey, value: unknown, enumerable = true): void {
  Object.defineProperty(object, key, { value, enumerable, writable: true, configurable: true });
}

/**
 * Gives an error its stack. The assignment comes first because of Node 20: there, a definition
 * formats the stack that it replaces, and so calls `Error.prepareStackTrace`, which may throw.
 */
export function defineStack(error: Error, stack: string | undefined): void {
  Reflect.set(error, 'stack', stack);
  define(error, 'stack', stack, false);
}

/** Whether `value` has an identity: an object, an array or a function. */
export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Whether `value` is an error, of this or another realm. Throws what a proxy throws. */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** The result of `read`. @returns undefined if `read` throws, as getters and proxies may */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The value of a property. @returns undefined if there is none, or if its getter throws */
export function fieldOf(value: unknown, key: PropertyKey): unknown {
  return attempt((): unknown => Reflect.get(Object(value), key, value));
}

/** Whether `await` would wait for `value`. Throws what a getter of its `then` throws. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof Reflect.get(value, 'then') === 'function';
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The `message` of an error, or of another object that has one; any other value as a string. */
export function messageOf(value: unknown): string {
  const message = isObject(value) ? textOf(fieldOf(value, 'message')) : undefined;
  return message ?? attempt(() => String(value)) ?? typeof value;
}

/** What people read of an error that the program's code has thrown: its class, too, if that says more. */
export function namedMessageOf(value: unknown): string {
  const name = isObject(value) ? textOf(fieldOf(value, 'name')) : undefined;
  const isOurs = String(codeOf(value)).startsWith('ERR_ALLSTOP');
  const saysMore = name !== undefined && name !== '' && name !== 'Error' && !isOurs;
  return saysMore ? `${name}: ${messageOf(value)}` : messageOf(value);
}

/** The `code` of a thrown value, if the code is a string or a number. */
export function codeOf(value: unknown): string | number | undefined {
  const code = fieldOf(value, 'code');
  return typeof code === 'string' || typeof code === 'number' ? code : undefined;
}

/** For errors that were decoded: the constructor names of the original error (`chainOf`). */
export const chains: WeakMap<object, string[]> = new WeakMap();

/** The names of the constructors of an object, the most derived class first. */
export function chainOf(value: object): string[] {
  const original = chains.get(value);
  if (original !== undefined) return original;
  const chain: string[] = [];
  let prototype: object | null = attempt(() => Object.getPrototypeOf(value)) ?? null;
  for (let steps = 0; prototype !== null && steps < 64; steps++) {
    const current: object = prototype;
    const made = attempt(() => {
      const property = Object.getOwnPropertyDescriptor(current, 'constructor');
      return (property?.value ?? property?.get?.call(current))?.name; // --frozen-intrinsics: a getter
    });
    if (typeof made === 'string' && made !== '' && made !== 'Object') chain.push(made);
    prototype = attempt(() => Object.getPrototypeOf(current)) ?? null;
  }
  return chain;
}

/** Whether `named` contains a constructor name, the `name` or the `code` of `value`. */
export function isOfType(value: unknown, named: readonly string[]): boolean {
  if (!isObject(value)) return false;
  const names: unknown[] = [...chainOf(value), fieldOf(value, 'name'), codeOf(value)];
  return names.some((name) => attempt(() => named.includes(String(name))));
}

/** A short text for any value: at most 80 characters. */
export function describe(value: unknown): string {
  const text = attempt(() =>
    typeof value === 'function' ? `function ${value.name}`.trim() : String(value),
  );
  return text === undefined || text.trim() === '' ? typeof value : text.slice(0, 80);
}

/** A thrown value as Node shows it, with its stack. */
export function shown(value: unknown): string {
  return attempt(() => inspect(value)) ?? describe(value);
}

/** The text that takes the place of a value that cannot be sent to another thread. */
export function marker(value: unknown, why?: unknown): string {
  const reason = textOf(fieldOf(why, 'message')) ?? 'it cannot be cloned';
  return `[allstop: not carried: ${describe(value)} (${reason})]`;
}

/** At most so many characters of a value that is neither an error nor a string. */
const MOST_CHARACTERS = 200;

/** A thrown value that is no error: a string as JSON writes it, anything else as Node shows it. */
function valueText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  const text = inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY, compact: true });
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

/**
 * Shows the control characters of one line as escapes, but for tabs: the names and messages of other
 * threads and processes could steer a terminal, or begin a line that seems to be ours.
 */
export const printable = (line: string): string =>
  line.replaceAll(/[^\t -~\xa0-\uffff]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(2, '0');
    return `\\x${code}`;
  });

/** Any thrown value in one line. */
export function oneLine(error: unknown): string {
  try {
    if (!isError(error)) return printable(`the value ${valueText(error).replaceAll(/\s+/g, ' ')}`);
    const [code, nativeType] = [fieldOf(error, 'code'), fieldOf(error, 'nativeType')];
    const type = typeof nativeType === 'string' && nativeType !== '' ? ` [${nativeType}]` : '';
    const suffix = typeof code === 'string' ? ` (${code})` : '';
    return printable(`${error.name}${type}: ${error.message.split('\n')[0]}${suffix}`);
  } catch {
    return 'a value that cannot be shown';
  }
}
