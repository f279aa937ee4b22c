/**
 * What can be read of a thrown value. It may be anything: getters and proxies throw,
 * `name` may be a number, `constructor` may lie. Nothing here throws, unless it says so.
 */

import { types } from 'node:util';

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** What `read` returns, or undefined if it throws: getters and proxies may. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Whether `await` would wait for `value`. Throws what a getter of its `then` throws. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof (value as { then?: unknown }).then === 'function';
}

/** What there is to say of a thrown value, in words. */
export const messageOf = (value: unknown): string =>
  value instanceof Error ? value.message : String(value);

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The `code` of a thrown value, if that is a string or a number. */
export function codeOf(value: unknown): string | number | undefined {
  const code = attempt(() => (value as { code?: unknown }).code);
  return typeof code === 'string' || typeof code === 'number' ? code : undefined;
}

/** Of errors that came from elsewhere: the chain that they had there. */
export const chains: WeakMap<object, string[]> = new WeakMap();

/** The names of the constructors of an object, the most derived first. */
export function chainOf(value: object): string[] {
  const original = chains.get(value);
  if (original !== undefined) return original;
  const chain: string[] = [];
  let prototype: object | null = attempt(() => Object.getPrototypeOf(value)) ?? null;
  for (let steps = 0; prototype !== null && steps < 64; steps++) {
    const current: object = prototype;
    const made = attempt(
      () => Object.getOwnPropertyDescriptor(current, 'constructor')?.value?.name,
    );
    if (typeof made === 'string' && made !== '' && made !== 'Object') chain.push(made);
    prototype = attempt(() => Object.getPrototypeOf(current)) ?? null;
  }
  return chain;
}

/** Whether one of `named` is among its constructors' names, its `name` or its `code`. */
export function isOfType(value: unknown, named: readonly string[]): boolean {
  if (!isObject(value)) return false;
  const names: unknown[] = [...chainOf(value), attempt(() => (value as Error).name), codeOf(value)];
  return names.some((name) => named.includes(String(name)));
}

export function describe(value: unknown): string {
  const text = attempt(() =>
    typeof value === 'function' ? `function ${value.name}` : String(value),
  );
  return text === undefined || text.trim() === '' ? typeof value : text.slice(0, 80);
}

/** What stands in the place of a value that cannot be carried. */
export function marker(value: unknown, why?: unknown): string {
  const reason = textOf(attempt(() => (why as Error).message)) ?? 'it cannot be cloned';
  return `[allstop: not carried: ${describe(value)} (${reason})]`;
}
