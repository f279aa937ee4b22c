/**
 * Finds the values that V8's Serializer takes and does not write.
 *
 * 1. Node's own objects (a URL, a Blob, a SocketAddress). From Node 22 on they are ordinary objects
 *    for V8, whose state it does not see: it writes each as an object without properties. Only
 *    structuredClone tells them from such objects.
 * 2. A WebAssembly.Module, of which V8 writes nothing at all, so that nobody can read the bytes.
 * 3. A DOMException, which from Node 22 on is an error for V8, and has its name and its message in
 *    getters: V8 writes an Error without either. (In Node 20 it is as the objects of 1.)
 */

import { isObject } from '../base/thrown-value.ts';
import { isDataCloneError } from './refused-values.ts';
import { kindOf, ownData, partsOf } from './walk.ts';

/** How an object without properties ends. The byte before is an 'o', of which text is full. */
const NO_PROPERTIES = Buffer.from('{\0', 'latin1');
const OBJECT = 'o'.charCodeAt(0);

/** 2 and 3 are looked for among so many values: a walk through all would take as long as V8. */
const MOST_VALUES = 128;

/** Undefined with Node's option `--jitless`. */
const Module = (globalThis as { WebAssembly?: { Module: abstract new () => object } }).WebAssembly
  ?.Module;

/** Whether `whyLost` has to clone the value, or knows a reason at once. */
export function mayBeLost(value: unknown, bytes: Uint8Array): boolean {
  return holdsEmptyObject(bytes) || lostNearTop(value) !== undefined;
}

/**
 * Looks for modules and DOMExceptions near the top of `value`, and for all objects of Node's own. If
 * there are empty objects among the bytes it clones `value`, which calls getters again.
 *
 * @param bytes - what a serializer has made of `value`
 * @returns the message of the DataCloneError for a `value` that `bytes` do not hold
 * @throws the error of a getter; RangeError: `value` is nested too deeply
 */
export function whyLost(value: unknown, bytes: Uint8Array): string | undefined {
  const near = lostNearTop(value);
  if (near !== undefined) return refusal(near);
  if (!holdsEmptyObject(bytes)) return undefined;
  let copy: unknown;
  try {
    copy = structuredClone(value);
  } catch (error) {
    if (isDataCloneError(error)) return error.message;
    throw error;
  }
  const lost = hostObjectIn(copy);
  return lost === undefined ? undefined : refusal(lost.constructor.name);
}

/** @throws DataCloneError: `bytes` do not hold all of `value`; what `whyLost` throws */
export function checkKept(value: unknown, bytes: Uint8Array): void {
  const why = whyLost(value, bytes);
  if (why !== undefined) throw new DOMException(why, 'DataCloneError');
}

const refusal = (name: string): string => `#<${name}> could not be cloned.`;

/** Whether a serializer has written an object without properties, or bytes that look like one. */
function holdsEmptyObject(bytes: Uint8Array): boolean {
  const buffer = Buffer.isBuffer(bytes) ? bytes : bufferOf(bytes);
  let at = buffer.indexOf(NO_PROPERTIES);
  while (at > 0 && buffer[at - 1] !== OBJECT) at = buffer.indexOf(NO_PROPERTIES, at + 1);
  return at > 0;
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/**
 * The class of a module or DOMException among the first MOST_VALUES of what a serializer has
 * written. No getter of an object is called.
 */
function lostNearTop(root: unknown): string | undefined {
  if (!isObject(root)) return undefined;
  // Breadth first. A value that contains itself is met again and again, until `left` is 0. Arrays and
  // plain objects are not left to `partsOf`: every item of a queue comes here, and it takes longer.
  const met: object[] = [root];
  let left = MOST_VALUES;
  for (let i = 0; i < met.length; ++i) {
    const value = met[i] as object;
    if (Module !== undefined && value instanceof Module) return 'Module';
    if (left <= 0 || value instanceof Date || ArrayBuffer.isView(value)) continue;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length && --left >= 0; ++at) {
        const item: unknown = value[at];
        if (isObject(item)) met.push(item);
      }
    } else if (Object.getPrototypeOf(value) === Object.prototype) {
      for (const key in value) {
        const item = ownData(value, key);
        if (isObject(item)) met.push(item);
        if (--left <= 0) break;
      }
    } else if (value instanceof DOMException) {
      return 'DOMException';
    } else {
      for (const part of partsOf(value)) {
        if (isObject(part.value)) met.push(part.value);
        if (--left <= 0) break;
      }
    }
  }
  return undefined;
}

/** @param copy - what structuredClone returns: without getters and proxies */
function hostObjectIn(copy: unknown): object | undefined {
  const met = new Set<unknown>([copy]); // gives the values that are added meanwhile, too
  for (const value of met) {
    if (!isObject(value)) continue;
    if (isHostObject(value)) return value;
    for (const part of partsOf(value)) if (isObject(part.value)) met.add(part.value);
  }
  return undefined;
}

/** Whether an object that structuredClone has made is of a class that V8 does not know. */
function isHostObject(value: object): boolean {
  if (value instanceof DOMException) return true;
  const prototype: object | null = Object.getPrototypeOf(value);
  // The prototype of a plain object. It may be that of another realm, as under Jest.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return false;
  return kindOf(value) === 'object';
}
