/**
 * The walk through a value, as structured clones go: what an object is, and which parts are copied
 * with it. No property or prototype of an object can hide what it is.
 */

import { types } from 'node:util';

/** 'leaf': has no parts that are copied. 'object': a plain one, or one of a class. */
export type Kind = 'array' | 'map' | 'set' | 'error' | 'leaf' | 'object';

export function kindOf(value: object): Kind {
  if (types.isProxy(value)) return 'leaf'; // no serializer takes it, and it may tell anything
  if (Array.isArray(value)) return 'array';
  if (types.isMap(value)) return 'map';
  if (types.isSet(value)) return 'set';
  if (types.isNativeError(value)) return 'error';
  return isLeaf(value) ? 'leaf' : 'object';
}

export function isLeaf(value: object): boolean {
  return (
    ArrayBuffer.isView(value) ||
    types.isDate(value) ||
    types.isAnyArrayBuffer(value) ||
    types.isRegExp(value) ||
    types.isBoxedPrimitive(value)
  );
}

/** One part of an object: the key or value of a Map's entry `at`, an item of a Set, a property. */
export type Part = {
  readonly value: unknown;
  readonly as: 'key' | 'value' | 'item' | 'property';
  readonly at: number | string;
};

const { entries } = Map.prototype;
const { values } = Set.prototype;

/** Not by the iterator of a subclass, which may give anything, and without end. */
export const entriesOf = (map: object): Iterable<[unknown, unknown]> => entries.call(map);
export const itemsOf = (set: object): Iterable<unknown> => values.call(set);

/** A property without its getter. */
export const ownData = (object: object, key: string): unknown =>
  Object.getOwnPropertyDescriptor(object, key)?.value;

/** The parts that a structured clone copies. `read`: gives the value of a property. */
export function* partsOf(
  value: object,
  read: (object: object, key: string) => unknown = ownData,
): Generator<Part> {
  const kind = kindOf(value);
  if (kind === 'leaf') return;
  let at = 0;
  if (types.isMap(value)) {
    for (const [key, item] of entriesOf(value)) {
      yield { value: key, as: 'key', at };
      yield { value: item, as: 'value', at };
      at += 1;
    }
  } else if (types.isSet(value)) {
    for (const item of itemsOf(value)) yield { value: item, as: 'item', at: at++ };
  } else {
    // Of an array without the holes, of which there may be very many.
    for (const key of kind === 'error' ? ['cause'] : Object.keys(value)) {
      yield { value: read(value, key), as: 'property', at: key };
    }
  }
}
