/**
 * Gives `object` an own property. An assignment would not do for every key: `__proto__` has a
 * setter, and an inherited property may be read-only.
 */
export function define(object: object, key: PropertyKey, value: unknown, enumerable = true): void {
  Object.defineProperty(object, key, { value, enumerable, writable: true, configurable: true });
}
