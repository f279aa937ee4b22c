/**
 * Modules of Node that take a millisecond or more to load, and that most programs need later or
 * never: the first call loads one.
 */

type Builtins = {
  'node:child_process': typeof import('node:child_process');
  'node:crypto': typeof import('node:crypto');
  'node:inspector': typeof import('node:inspector');
  'node:os': typeof import('node:os');
  'node:v8': typeof import('node:v8');
  'node:vm': typeof import('node:vm');
  'node:worker_threads': typeof import('node:worker_threads');
};

/** Not Bun, not Deno. */
export const isNode: boolean =
  process.versions['bun'] === undefined && process.versions['deno'] === undefined;

/** Whether there are Serializer and Deserializer. Bun has only `serialize` and `deserialize`. */
export const hasSerializer: boolean = process.versions['bun'] === undefined;

const loaded: Partial<Builtins> = {};

export function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  return (loaded[name] ??= process.getBuiltinModule(name));
}

/** It loads all streams, which a program without threads and pipes does not need. */
export const workerThreads = (): typeof import('node:worker_threads') =>
  builtin('node:worker_threads');
