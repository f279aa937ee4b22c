/**
 * What a typed array really is: `instanceof` and a property are what a program says that it is, and
 * refuse the arrays of another realm (of `node:vm`). Native code trusts no property either.
 */

import { isSharedArrayBuffer } from 'node:util/types';

const typedArray = Object.getPrototypeOf(Int32Array.prototype) as object;
const getterOf = (name: PropertyKey): ((this: unknown) => unknown) =>
  Object.getOwnPropertyDescriptor(typedArray, name)?.get as () => unknown;
const [tag, size] = [getterOf(Symbol.toStringTag), getterOf('length')];
const [memory, offset] = [getterOf('buffer'), getterOf('byteOffset')];

/** The name of its class; undefined if it is no typed array. */
export const classOf = (value: unknown): string | undefined => {
  const name = tag.call(value);
  return typeof name === 'string' ? name : undefined;
};
export const lengthOf = (array: ArrayBufferView): number => size.call(array) as number;
export const bufferOf = (array: ArrayBufferView): ArrayBuffer => memory.call(array) as ArrayBuffer;
export const byteOffsetOf = (array: ArrayBufferView): number => offset.call(array) as number;

/** Whether `value` is an Int32Array over a SharedArrayBuffer. */
export function isSharedWords(value: unknown): value is Int32Array {
  return classOf(value) === 'Int32Array' && isSharedArrayBuffer(bufferOf(value as Int32Array));
}
