/** What the fuzz targets share. Each target exports `fuzz(bytes)`, which throws if it finds a fault. */

import { deserialize, serialize } from 'node:v8';

export function must(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`Not so: ${what}`);
}

/** Runs `read`. @returns what it throws, which must be of one of `classes`, or undefined */
export function refusal(
  read: () => void,
  ...classes: (abstract new (
    ...args: never[]
  ) => Error)[]
): Error | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (classes.some((each) => error instanceof each)) return error as Error;
    throw new Error(`Threw what is not documented: ${String(error)}`, { cause: error });
  }
}

/** A random integer from 0 to `limit` - 1. */
export type Random = (limit: number) => number;

const nested = (depth: number): unknown => {
  let value: unknown = [];
  for (let i = 0; i < depth; i += 1) value = [value];
  return value;
};
const sparse = (length: number): unknown[] => {
  const list: unknown[] = [];
  list.length = length;
  return list;
};
const ODD: (() => unknown)[] = [
  () => undefined,
  () => null,
  () => -1,
  () => 0.5,
  () => Number.NaN,
  () => 2 ** 53,
  () => '',
  () => 'x'.repeat(300),
  () => '__proto__',
  () => [],
  () => ({}),
  () => JSON.parse('{"__proto__":{"polluted":1}}') as unknown,
  () => sparse(1000),
  () => sparse(2 ** 32 - 1),
  () => new Uint8Array(3),
  () => new Float64Array(2),
  () => new Map([[1, 2]]),
  () => new Set(['x']),
  () => new Date(Number.NaN),
  () => 10n,
  () => /x/g,
  () => new Error('x'),
  () => nested(40),
  () => true,
];

/** A copy of `value` in which one part, found by chance, is another value, twice there, or gone. */
function changePart(value: unknown, random: Random): unknown {
  if (random(4) === 0 || typeof value !== 'object' || value === null) {
    if (typeof value === 'number' && random(2) === 0) return value + random(3) - 1;
    if (typeof value === 'string' && random(2) === 0) return value.slice(random(value.length + 1));
    return ODD[random(ODD.length)]?.();
  }
  const keys = Object.keys(value);
  if (ArrayBuffer.isView(value) || keys.length === 0 || keys.length > 1000) return value;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  const key = keys[random(keys.length)] as string;
  const what = random(8);
  if (what === 0) delete copy[key];
  else if (what === 1 && Array.isArray(copy)) copy.push(copy[Number(key)]);
  else copy[key] = changePart(copy[key], random);
  return copy;
}

/** Changes a value inside the bytes of `v8.serialize`, which random bytes seldom do. */
export function changeSerialized(bytes: Uint8Array, random: Random): Uint8Array | undefined {
  try {
    return serialize(changePart(deserialize(bytes), random));
  } catch {
    return undefined; // not serialized, or no longer
  }
}

/** Changes a value inside JSON. */
export function changeJson(bytes: Uint8Array, random: Random): Uint8Array | undefined {
  try {
    const text = JSON.stringify(changePart(JSON.parse(Buffer.from(bytes).toString()), random));
    return text === undefined ? undefined : Buffer.from(text);
  } catch {
    return undefined;
  }
}
