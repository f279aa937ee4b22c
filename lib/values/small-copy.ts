/**
 * Copies small plain values, which is cheaper than any serializer. A larger or stranger value is
 * left to a serializer: no getter was called and no proxy's trap, and at most MAX_PROPERTIES
 * properties were read.
 */

import { types } from 'node:util';

const MAX_PROPERTIES = 24;
const BYTES_OF_A_NUMBER = 8;

export type SmallCopy = {
  readonly values: unknown[];
  /** About how many bytes the values take. */
  readonly bytes: number;
};

/** About how many bytes a primitive value takes; undefined for a symbol, function or object. */
export function bytesOfPrimitive(value: unknown): number | undefined {
  switch (typeof value) {
    case 'string':
      return value.length;
    case 'symbol':
    case 'function':
      return undefined;
    case 'object':
      return value === null ? BYTES_OF_A_NUMBER : undefined;
    default:
      return BYTES_OF_A_NUMBER;
  }
}

class Copier {
  bytes = 0;
  #left = MAX_PROPERTIES;
  /** The objects that were met: a second reference to one of them has to stay the same object. */
  readonly #seen: object[] = [];
  readonly #onError: ((error: Error) => void) | undefined;

  constructor(onError: ((error: Error) => void) | undefined) {
    this.#onError = onError;
  }

  /** @returns false if the value is not small and plain */
  copy(from: object, to: unknown[] | Record<string, unknown>): boolean {
    if (this.#seen.includes(from)) return false;
    this.#seen.push(from);
    const keys = Object.keys(from);
    // An array with holes, or with properties beside its elements, is left to a serializer.
    if (Array.isArray(from) && keys.length !== from.length) return false;
    this.#left -= keys.length;
    if (this.#left < 0) return false;
    for (const key of keys) {
      const property = Object.getOwnPropertyDescriptor(from, key);
      if (property === undefined || !('value' in property) || key === '__proto__') return false;
      const { value }: { value?: unknown } = property;
      const bytes = bytesOfPrimitive(value);
      let own = value;
      if (bytes === undefined) {
        if (types.isNativeError(value)) this.#onError?.(value);
        own = emptyLike(value);
        if (own === undefined || !this.copy(value as object, own as unknown[])) return false;
      } else this.bytes += bytes;
      (to as Record<string, unknown>)[key] = own;
      this.bytes += key.length;
    }
    return true;
  }
}

/** An empty object of the same kind; undefined unless the value is a plain object or array. */
function emptyLike(value: unknown): unknown[] | Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || types.isProxy(value)) return undefined;
  const isArray = Array.isArray(value);
  // An array's keys are counted below: of a long one this alone would take long.
  if (isArray && value.length > MAX_PROPERTIES) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (isArray) return prototype === Array.prototype ? [] : undefined;
  return prototype === Object.prototype ? {} : undefined;
}

/**
 * @param onError - called with an error that was met
 * @returns undefined unless all values are small and plain
 */
export function smallCopy(
  values: readonly unknown[],
  onError?: (error: Error) => void,
): SmallCopy | undefined {
  if (values.length > MAX_PROPERTIES) return undefined;
  const copier = new Copier(onError);
  const copies: unknown[] = [];
  return copier.copy(values, copies) ? { values: copies, bytes: copier.bytes } : undefined;
}
