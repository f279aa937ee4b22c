/**
 * Finds the values that V8's Serializer, or structuredClone, takes and does not write.
 *
 * 1. Node's own objects (a URL, a Blob, a SocketAddress). From Node 22 on they are ordinary objects
 *    for V8, whose state it does not see: it writes each as an object without properties. Only
 *    structuredClone tells them from such objects.
 * 2. A WebAssembly.Module, of which V8 writes nothing at all, so that nobody can read the bytes.
 * 3. A DOMException, which from Node 22 on is an error for V8, and has its name and its message in
 *    getters: V8 writes an Error without either. (In Node 20 it is as the objects of 4.)
 * 4. Objects of the platform that structuredClone does not know either, and of which it makes `{}`:
 *    an AbortSignal, an Event, a TextDecoder; in Node 20 a URL and a Headers, too. An instance of a
 *    class of the program arrives as a plain object, which is a promise (docs/pool.md).
 */

import { isProxy } from 'node:util/types';
import { attempt, fieldOf, isObject } from '../base/thrown-value.ts';
import { kindOf, ownData, partsOf } from './walk.ts';

/** How an object without properties ends. The byte before is an 'o', of which text is full. */
const NO_PROPERTIES = Buffer.from('{\0', 'latin1');
const OBJECT = 'o'.charCodeAt(0);

/** 2 to 4 are looked for among so many values: a walk through all would take as long as V8. */
const MOST_VALUES = 128;

/** Undefined with Node's option `--jitless`. */
const Module = (globalThis as { WebAssembly?: { Module: abstract new () => object } }).WebAssembly
  ?.Module;

/** Whether `whyLost` has to clone the value, or knows a reason at once. */
export function mayBeLost(value: unknown, bytes: Uint8Array): boolean {
  return holdsEmptyObject(bytes) || nearTop(value, lostInBytes) !== undefined;
}

/**
 * Looks for modules and DOMExceptions near the top of `value`, and for all objects of Node's own
 * and of the platform. If there are empty objects among the bytes it clones `value`, which calls
 * getters again.
 *
 * @param bytes - what a serializer has made of `value`
 * @returns the message of the DataCloneError for a `value` that `bytes` do not hold
 * @throws the error of a getter; RangeError: `value` is nested too deeply
 */
export function whyLost(value: unknown, bytes: Uint8Array): string | undefined {
  const near = nearTop(value, lostInBytes);
  if (near !== undefined) return refusal(near);
  if (!holdsEmptyObject(bytes)) return undefined;
  let copy: unknown;
  try {
    copy = structuredClone(value);
  } catch (error) {
    if (isDataCloneError(error)) return error.message;
    throw error;
  }
  const lost = firstIn(copy, hostClass) ?? firstIn(value, emptiedClass);
  return lost === undefined ? undefined : refusal(lost);
}

/** @throws DataCloneError: `bytes` do not hold all of `value`; what `whyLost` throws */
export function checkKept(value: unknown, bytes: Uint8Array): void {
  const why = whyLost(value, bytes);
  if (why !== undefined) throw new DOMException(why, 'DataCloneError');
}

/** @throws DataCloneError: an object of which a clone is `{}`, near the top of `value` or anywhere */
export function checkCloned(value: unknown, isAnywhere = false): void {
  const lost = isAnywhere ? firstIn(value, emptiedClass) : nearTop(value, emptiedClass);
  if (lost !== undefined) throw new DOMException(refusal(lost), 'DataCloneError');
}

/** As structuredClone. @throws what `checkCloned` throws */
export function cloneChecked<T>(value: T, isAnywhere = false): T {
  const copy = structuredClone(value);
  checkCloned(value, isAnywhere);
  return copy;
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

/** The class of an object that is lost. */
type Lost = (value: object) => string | undefined;

const lostInBytes: Lost = (value) => {
  if (value instanceof DOMException) return 'DOMException';
  return Module !== undefined && value instanceof Module ? 'Module' : emptiedClass(value);
};

/** What `lost` says of the first MOST_VALUES of a value. No getter of an object is called. */
function nearTop(root: unknown, lost: Lost): string | undefined {
  if (!isObject(root)) return undefined;
  // Breadth first. A value that contains itself is met again and again, until `left` is 0. Arrays and
  // plain objects are not left to `partsOf`: every item of a queue comes here, and it takes longer.
  const met: object[] = [root];
  let left = MOST_VALUES;
  for (let i = 0; i < met.length; ++i) {
    const value = met[i] as object;
    if (isProxy(value) || value instanceof Date || ArrayBuffer.isView(value)) continue;
    const isPlain = Object.getPrototypeOf(value) === Object.prototype;
    const name = isPlain || Array.isArray(value) ? undefined : lost(value);
    if (name !== undefined) return name;
    if (left <= 0) continue;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length && --left >= 0; ++at) {
        const item: unknown = value[at];
        if (isObject(item)) met.push(item);
      }
    } else if (isPlain || kindOf(value) === 'object') {
      for (const key in value) {
        const item = ownData(value, key);
        if (isObject(item)) met.push(item);
        if (--left <= 0) break;
      }
    } else {
      for (const part of partsOf(value)) {
        if (isObject(part.value)) met.push(part.value);
        if (--left <= 0) break;
      }
    }
  }
  return undefined;
}

/** What `lost` says of the first of all values for which it knows a class. */
function firstIn(whole: unknown, lost: Lost): string | undefined {
  const met = new Set<unknown>([whole]); // gives the values that are added meanwhile, too
  for (const value of met) {
    if (!isObject(value)) continue;
    const name = lost(value);
    if (name !== undefined) return name;
    for (const part of partsOf(value)) if (isObject(part.value)) met.add(part.value);
  }
  return undefined;
}

const NONE = '';
/** By prototype: what `platformClassOf` says of it. */
const platformClasses = new WeakMap<object, string>();

/** The class of an object of the platform of which structuredClone makes an empty plain object. */
function emptiedClass(value: object): string | undefined {
  const prototype: object | null = isProxy(value) ? null : Object.getPrototypeOf(value);
  if (prototype === null || isPlainPrototype(prototype) || isProxy(prototype)) return undefined;
  let name = platformClasses.get(prototype);
  if (name === undefined) {
    name = platformClassOf(prototype);
    platformClasses.set(prototype, name);
  }
  if (name === NONE || Object.keys(value).length > 0) return undefined;
  const copy = attempt(() => structuredClone(value)); // fails for what is refused, or has to be moved
  return copy !== undefined && isPlainPrototype(Object.getPrototypeOf(copy)) ? name : undefined;
}

/**
 * The name of a class that is a global, which no program has assigned, and none of the language: V8
 * knows those, and what only inherits from an ArrayBuffer, say, is a plain object. NONE for another.
 */
function platformClassOf(prototype: object): string {
  const Class = ownData(prototype, 'constructor');
  if (typeof Class !== 'function' || isProxy(Class)) return NONE;
  const name = ownData(Class, 'name');
  if (typeof name !== 'string') return NONE;
  if (Object.getOwnPropertyDescriptor(globalThis, name)?.enumerable !== false) return NONE;
  const isOfLanguage = Function.prototype.toString.call(Class).endsWith('{ [native code] }');
  return Reflect.get(globalThis, name) === Class && !isOfLanguage ? name : NONE;
}

/** The prototype of a plain object. It may be that of another realm, as under Jest. */
const isPlainPrototype = (prototype: object): boolean => Object.getPrototypeOf(prototype) === null;

/** The class of an object that structuredClone has made, if V8 does not know it. */
function hostClass(value: object): string | undefined {
  if (value instanceof DOMException) return 'DOMException';
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || isPlainPrototype(prototype)) return undefined;
  return kindOf(value) === 'object' ? value.constructor.name : undefined;
}

// The errors for values that a serializer refuses: they name the part for which it does.

type Part = {
  /** How a program would write it: `item.list[2].fn`. */
  readonly path: string;
  readonly value: unknown;
};

/** The search ends here, with the innermost refused part that it knows. */
const MOST_PARTS = 10_000;
const MOST_LEVELS = 64;

/** Whether a serializer has refused a value; another error is one of a getter, or a RangeError. */
export function isDataCloneError(error: unknown): error is DOMException {
  return isObject(error) && fieldOf(error, 'name') === 'DataCloneError';
}

/**
 * Makes the error for a value that `clone` refuses, with the place of the part that it refuses. An
 * `error` of another kind (of a getter; RangeError) is returned as it is.
 *
 * @param what - begins the message: "The result"
 * @param whole - the value, with its name in the message
 */
export function refusedValue(
  error: unknown,
  what: string,
  whole: Part,
  clone: (value: unknown) => unknown,
): unknown {
  if (!isDataCloneError(error)) return error;
  const part = refusedPart(whole, clone);
  const why =
    typeof part.value === 'function'
      ? `${part.path} is a function`
      : `${part.path}: ${error.message}`;
  return new DOMException(`${what} cannot be cloned: ${why}`, 'DataCloneError');
}

export function refuses(clone: (value: unknown) => unknown, value: unknown): boolean {
  try {
    clone(value);
    return false;
  } catch {
    return true;
  }
}

/**
 * @param clone - throws for the value of `whole`
 * @returns the innermost part that `clone` refuses; `whole` if that is the value itself
 */
export function refusedPart(whole: Part, clone: (value: unknown) => unknown): Part {
  /** Refused objects. A part that contains one of them may be refused for that one. */
  const met = new Set<unknown>();
  let left = MOST_PARTS;
  const isRefused = (value: unknown): boolean => {
    if (typeof value !== 'symbol' && !isObject(value)) return false;
    left -= 1;
    return refuses(clone, value);
  };
  const innermost = (refused: Part, level: number): Part | undefined => {
    met.add(refused.value);
    let isWhole = true;
    for (const part of level < MOST_LEVELS ? partsIn(refused) : []) {
      if (left === 0) break;
      if (!met.has(part.value)) {
        if (!isRefused(part.value)) continue;
        const found = innermost(part, level + 1);
        if (found !== undefined) return found;
      }
      isWhole = false;
    }
    return isWhole ? refused : undefined;
  };
  return innermost(whole, 0) ?? whole;
}

/** The parts of an object. One whose getter throws is undefined here, which is never refused. */
function* partsIn({ path, value }: Part): Generator<Part> {
  if (typeof value !== 'object' || value === null) return;
  for (const { value: part, as, at } of partsOf(value, propertyOf)) {
    if (as === 'property') yield { path: path + accessTo(String(at)), value: part };
    else {
      const inEntry = { key: '[0]', value: '[1]', item: '' }[as];
      yield { path: `[...${path}][${at}]${inEntry}`, value: part };
    }
  }
}

const propertyOf = (value: object, key: string): unknown =>
  attempt(() => ({ value: Reflect.get(value, key) }))?.value;

function accessTo(key: string): string {
  if (/^\d+$/.test(key)) return `[${key}]`;
  // Not a literal: V8 makes the sets of letters when it first reads the source, in each thread.
  return new RegExp(String.raw`^[\p{ID_Start}$_][\p{ID_Continue}$]*$`, 'u').test(key)
    ? `.${key}`
    : `[${JSON.stringify(key)}]`;
}

// Objects that no serializer takes. structuredClone copies the enumerable properties of an object,
// and not the private fields of its class: a RemoteValue among other values would arrive as `{}`.
// So such an object has a property that cannot be cloned; the serializer itself finds it,
// wherever the object is, and no walk of ours through all values is needed.

/** Values for a property named `uncloneable`: the description of each is the error's message. */
export const NO_REMOTE_VALUE: symbol = Symbol(
  'A RemoteValue can only be an argument itself, of a function, not inside another value: fetch() it first, and pass its value',
);
export const NO_PER_WORKER_VALUES: symbol = Symbol(
  'PerWorkerValues can only be arguments themselves, not inside another value, and only in the cluster that made them',
);

/** The message for an object whose `uncloneable` made a serializer throw `error`; else undefined. */
export function whyUncloneable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const found = [NO_REMOTE_VALUE, NO_PER_WORKER_VALUES].find((each) =>
    error.message.includes(String(each)),
  );
  return found?.description;
}
