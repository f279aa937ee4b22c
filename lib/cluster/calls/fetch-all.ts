/** `fetch()` of a structure that contains RemoteValues. */

import { define } from '../../base/thrown-value.ts';
import { type RemoteValue, RemoteValue as RemoteValueClass } from './remote-value.ts';

/** `T` with each RemoteValue in its arrays, plain objects, Maps and Sets replaced by its value. */
export type Fetched<T> =
  T extends RemoteValue<infer V>
    ? V
    : T extends ReadonlyMap<infer K, infer V>
      ? Map<K, Fetched<V>>
      : T extends ReadonlySet<infer V>
        ? Set<Fetched<V>>
        : T extends readonly unknown[]
          ? { -readonly [I in keyof T]: Fetched<T[I]> }
          : T extends (...args: never[]) => unknown
            ? T
            : T extends object
              ? FetchedFields<T>
              : T;

/** A type without RemoteValues stays itself: mapping its fields would lose that it is a class. */
type FetchedFields<T extends object> = T extends { [K in keyof T]: Fetched<T[K]> }
  ? T
  : { [K in keyof T]: Fetched<T[K]> };

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Resolves with a copy in which each RemoteValue is replaced by its value. Values other than
 * arrays, plain objects, Maps and Sets are not copied. Holes of arrays stay holes.
 *
 * @throws (rejects) the error of the first RemoteValue to fail
 */
export async function fetchAll(structure: unknown): Promise<unknown> {
  const copies = new Map<object, unknown>();
  // None is fetched before the walk has ended: a getter or proxy that throws leaves nothing behind.
  const found: { remote: RemoteValue<unknown>; put: (value: unknown) => void }[] = [];
  const walk = (value: unknown, put: (copy: unknown) => void): void => {
    if (typeof value !== 'object' || value === null) {
      put(value);
    } else if (copies.has(value)) {
      put(copies.get(value));
    } else if (value instanceof RemoteValueClass) {
      found.push({ remote: value, put });
    } else if (Array.isArray(value)) {
      const copy: unknown[] = [];
      copy.length = value.length;
      copies.set(value, copy);
      put(copy);
      for (const key of Object.keys(value)) {
        const index = Number(key);
        if (!(index < value.length)) break; // the other keys come after the indexes
        walk(value[index], (made) => (copy[index] = made));
      }
    } else if (value instanceof Map) {
      const copy = new Map<unknown, unknown>([...value.keys()].map((key) => [key, undefined]));
      copies.set(value, copy);
      put(copy);
      for (const [key, each] of value) walk(each, (made) => copy.set(key, made));
    } else if (value instanceof Set) {
      const items: unknown[] = [];
      const copy = new Set<unknown>();
      copies.set(value, copy);
      put(copy);
      const all = [...value];
      for (const [index, each] of all.entries()) walk(each, (made) => (items[index] = made));
      atEnd.push(() => {
        for (const item of items) copy.add(item);
      });
    } else if (isPlain(value)) {
      const copy: Record<string, unknown> = Object.create(Object.getPrototypeOf(value));
      copies.set(value, copy);
      put(copy);
      for (const [key, each] of Object.entries(value))
        walk(each, (made) => define(copy, key, made));
    } else {
      put(value);
    }
  };
  const atEnd: (() => void)[] = [];
  let result: unknown;
  walk(structure, (copy) => {
    result = copy;
  });
  await Promise.all(found.map(({ remote, put }) => remote.fetch().then(put)));
  for (const finish of atEnd) finish();
  return result;
}
