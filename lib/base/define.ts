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
  (error as { stack?: string | undefined }).stack = stack;
  define(error, 'stack', stack, false);
}
