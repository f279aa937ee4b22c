/**
 * What a typed array really is: `instanceof` and a property are what a program says that it is, and
 * refuse the arrays of another realm (of `node:vm`). Native code trusts no property either.
 */

import { isSharedArrayBuffer } from 'node:util/types';

const typedArray: object = Object.getPrototypeOf(Int32Array.prototype);
const getterOf = (name: PropertyKey) =>
  Object.getOwnPropertyDescriptor(typedArray, name)?.get ?? (() => undefined);
const [tag, size] = [getterOf(Symbol.toStringTag), getterOf('length')];
const [memory, offset] = [getterOf('buffer'), getterOf('byteOffset')];
const bytes = getterOf('byteLength');
const getterOfBuffers = (name: PropertyKey) =>
  Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, name)?.get ?? (() => undefined);
const [bytesOfBuffer, resizable] = [getterOfBuffers('byteLength'), getterOfBuffers('resizable')];

/** The name of its class; undefined if it is no typed array. */
export const classOf = (value: unknown): string | undefined => {
  const name = tag.call(value);
  return typeof name === 'string' ? name : undefined;
};
export const lengthOf = (array: unknown): number => size.call(array);
export const bufferOf = (array: unknown): ArrayBuffer => memory.call(array);
export const byteOffsetOf = (array: unknown): number => offset.call(array);
export const byteLengthOf = (array: unknown): number => bytes.call(array);
export const byteLengthOfBuffer = (buffer: ArrayBuffer): number => bytesOfBuffer.call(buffer);
export const isResizable = (buffer: ArrayBuffer): boolean => resizable.call(buffer) === true;

/** Whether `value` is an Int32Array over a SharedArrayBuffer. */
export function isSharedWords(value: unknown): value is Int32Array {
  return classOf(value) === 'Int32Array' && isSharedArrayBuffer(bufferOf(value));
}
