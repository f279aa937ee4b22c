/**
 * Packs arguments, results and messages as bytes, for a process or a thread, with the semantics of
 * structuredClone. Uses V8's Serializer itself, not Node's `v8.serialize`: a typed array unpacked
 * from that is a view of the whole message, and keeps its memory.
 */

import { isArrayBuffer } from 'node:util/types';
import type { Serializer } from 'node:v8';
import { builtin, hasSerializer } from '../base/builtins.ts';
import {
  bufferOf,
  byteLengthOf,
  byteLengthOfBuffer,
  byteOffsetOf,
  classOf,
  isResizable,
} from '../base/typed-arrays.ts';
import { checkKept } from './lost-values.ts';

/** @throws DataCloneError: bytes cannot hold the value; the error of a getter; RangeError */
export function packValue(value: unknown): Uint8Array {
  if (!hasSerializer) return builtin('node:v8').serialize(value);
  const bytes = pack(value);
  checkKept(value, bytes);
  return bytes;
}

/** Packs a message, in which values of the user are bytes already. @throws DataCloneError */
export function packMessage(message: object): Uint8Array {
  return hasSerializer ? pack(message) : builtin('node:v8').serialize(message);
}

/** What a serializer calls for values that it cannot write: its own methods make plain Errors. */
const SERIALIZER_HOOKS = {
  _getDataCloneError: (message: string): Error => new DOMException(message, 'DataCloneError'),
  _writeHostObject: ({ constructor }: object): never => {
    throw new DOMException(`#<${constructor.name}> could not be cloned.`, 'DataCloneError');
  },
  _getSharedArrayBufferId: (): never => {
    throw new DOMException('#<SharedArrayBuffer> could not be cloned.', 'DataCloneError');
  },
};

/** The hooks are assigned to each serializer, since Bun has no class to extend. */
function written(value: unknown, hooks: typeof SERIALIZER_HOOKS): Serializer {
  const serializer = Object.assign(new (builtin('node:v8').Serializer)(), hooks);
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer;
}

const pack = (value: unknown): Buffer => written(value, SERIALIZER_HOOKS).releaseBuffer();

/**
 * @throws DataCloneError: the bytes are malformed; or another version of Node has packed them,
 *   whose encoding this one cannot read (an Error with a cause from Node 20 in later versions,
 *   types that this version does not have); or the value is nested too deeply for this
 *   thread's stack
 */
export function unpackValue(bytes: Uint8Array): unknown {
  try {
    if (!hasSerializer) return builtin('node:v8').deserialize(bytes);
    return readAny(bytes).value;
  } catch (error) {
    throw unreadable(error);
  }
}

/** The error for bytes that a deserializer has refused with `error`. */
function unreadable(error: unknown): DOMException {
  const why =
    error instanceof RangeError
      ? `: ${error.message}`
      : `, by Node ${process.version}: does the other machine have another version?`;
  return new DOMException(`A value cannot be read here${why}`, 'DataCloneError');
}

/** @returns undefined for a message that is not allstop's but the user's */
export function unpackMessage(message: unknown): unknown {
  if (!(message instanceof Uint8Array)) return undefined;
  try {
    return unpackValue(message);
  } catch {
    return undefined;
  }
}

// The arguments of a call as bytes, and back.
//
// The bytes are: what V8's Serializer makes of the array of arguments; then a table of the bare
// typed arrays and ArrayBuffers among the arguments (how many; then for each its index, its kind
// and its length in bytes); then their bytes, in the order of the table. So the bytes of a bare
// array are copied once when they are packed, and only that part of its ArrayBuffer which it shows.

/**
 * The arguments of a call on their way to a worker: values, or packed. If they are
 * a Uint8Array, the worker packs the result, too.
 */
export type PassedArguments = readonly unknown[] | ArrayBuffer | Uint8Array;

/** A typed array or ArrayBuffer that is an argument itself. */
export type BareArray = {
  readonly index: number;
  readonly kind: number;
  readonly bytes: Uint8Array;
};

type ArrayClass = {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, offset: number, length: number): ArrayBufferView;
};

/** A kind is an index of this list. 0: an ArrayBuffer. The list may only grow at its end. */
const KINDS: readonly (ArrayClass | undefined)[] = [
  undefined,
  Uint8Array,
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
];
const KIND_OF: ReadonlyMap<string, number> = new Map(
  KINDS.map((kind, index) => [kind?.name ?? 'ArrayBuffer', index]),
);
const UINT32_MAX = 2 ** 32 - 1;

/**
 * @returns undefined: the value is no bare array; or it is one that V8 has to judge: it is empty
 *   or detached, resizable, or shares its memory
 */
export function bareArray(value: object, index: number): BareArray | undefined {
  const isView = ArrayBuffer.isView(value);
  const kind = KIND_OF.get((isView ? classOf(value) : 'ArrayBuffer') ?? '');
  const buffer = isView && kind !== undefined ? bufferOf(value) : value;
  if (kind === undefined || !isArrayBuffer(buffer) || isResizable(buffer)) return undefined;
  const byteLength = isView ? byteLengthOf(value) : byteLengthOfBuffer(buffer);
  if (byteLength === 0 || byteLength > UINT32_MAX) return undefined;
  const bytes = new Uint8Array(buffer, isView ? byteOffsetOf(value) : 0, byteLength);
  return { index, kind, bytes };
}

const ARGUMENT_HOOKS = {
  ...SERIALIZER_HOOKS,
  _getSharedArrayBufferId: (): never => {
    throw new DOMException(SHARED_MEMORY, 'DataCloneError');
  },
};

/** The message of the DataCloneError for a SharedArrayBuffer. */
export const SHARED_MEMORY = 'A SharedArrayBuffer cannot be packed as bytes';

/** Bytes that fill their ArrayBuffer. (TypeScript before 5.7 has no `Uint8Array<ArrayBuffer>`.) */
export type PackedArguments = Uint8Array & { readonly buffer: ArrayBuffer };

/**
 * @param args - `undefined` in place of each bare array
 * @returns bytes that fill their ArrayBuffer
 * @throws DataCloneError: a value that cannot be packed; the error of a getter; RangeError: a value
 *   is nested too deeply
 */
export function packArguments(
  args: readonly unknown[],
  bare: readonly BareArray[],
): PackedArguments {
  if (!hasSerializer) return Uint8Array.from(builtin('node:v8').serialize(args));
  const serializer = written(args, ARGUMENT_HOOKS);
  serializer.writeUint32(bare.length);
  let length = 0;
  for (const { index, kind, bytes } of bare) {
    serializer.writeUint32(index);
    serializer.writeUint32(kind);
    serializer.writeUint32(bytes.byteLength);
    length += bytes.byteLength;
  }
  const head = serializer.releaseBuffer();
  if (length === 0 && head.byteLength === head.buffer.byteLength) return head;
  let at = head.byteLength;
  const all = Buffer.allocUnsafeSlow(at + length);
  all.set(head);
  for (const { bytes } of bare) {
    all.set(bytes, at);
    at += bytes.byteLength;
  }
  return all;
}

/** The arguments as bytes for a process or node. @throws DataCloneError */
export function passedAsBytes(args: PassedArguments): Uint8Array {
  if (args instanceof Uint8Array) return args;
  return args instanceof ArrayBuffer ? new Uint8Array(args) : packArguments(args, []);
}

/**
 * @returns the arguments: each an object of its own, that shares no memory with the bytes
 * @throws DataCloneError, as `unpackValue`; TypeError: the bytes hold no array
 */
export function unpackArguments(packed: Uint8Array): unknown[] {
  try {
    if (!hasSerializer) return checkArray(builtin('node:v8').deserialize(packed));
    const own = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
    const { value, rest } = readPlain(own) ?? readAny(packed);
    const args = checkArray(value);
    const table = Array.from({ length: rest.readUint32() }, () => ({
      index: rest.readUint32(),
      kind: rest.readUint32(),
      byteLength: rest.readUint32(),
    }));
    for (const { index, kind, byteLength } of table) {
      args[index] = ownArray({ index, kind, bytes: rest.readRawBytes(byteLength) });
    }
    return args;
  } catch (error) {
    if (error instanceof TypeError) throw error;
    throw unreadable(error);
  }
}

function readAny(packed: Uint8Array): { value: unknown; rest: PackedRest } {
  const deserializer = new (builtin('node:v8').Deserializer)(packed);
  deserializer.readHeader();
  return { value: deserializer.readValue(), rest: deserializer };
}

/**
 * An array of the same class and content, with an ArrayBuffer of its own.
 *
 * @param buffer - its ArrayBuffer, of the same length, whose content is lost; a new one if left out
 */
export function ownArray(
  { kind, bytes }: BareArray,
  // Not `slice`, which clears the memory before it copies.
  buffer: ArrayBuffer = Buffer.allocUnsafeSlow(bytes.byteLength).buffer as ArrayBuffer,
): ArrayBufferView | ArrayBuffer {
  new Uint8Array(buffer).set(bytes);
  const Class = KINDS[kind];
  if (Class === undefined) return buffer;
  return new Class(buffer, 0, buffer.byteLength / Class.BYTES_PER_ELEMENT);
}

function checkArray(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError('The arguments of a call are not an array');
}

// Reads packed values that are plain: numbers, strings, booleans, null, undefined, arrays without
// holes, plain objects. They are the most of what calls take, and V8's Deserializer is slow here:
// its table of objects, which JavaScript cannot clear, keeps all that it has read until the next
// full collection. (A call to a thread with 10,000 small objects, all in all: 10.9 to 11.5 ms of
// processor time, here 7.6 to 8.3; with 30: 0.106 to 0.110, here 0.093 to 0.099.)
// `readPlain` gives up at the first byte that it does not know; then the
// Deserializer reads all from the start. So the format is V8's alone, and nothing depends on this
// file but time.

/** The only version of the format that is read here: that of Node 18 and later. */
const VERSION = 15;
const MAX_DEPTH = 100;
/** V8 reads longer arrays of numbers faster: 30 ms for a million, here 46 ms. Its table has no numbers. */
const MANY_NUMBERS = 50_000;
const CACHED_STRINGS = 256;
const LONGEST_CACHED = 32;

/** The tags of V8's value-serializer.cc. */
const TAG = {
  version: 0xff,
  undefined: 0x5f, // _
  null: 0x30, // 0
  true: 0x54, // T
  false: 0x46, // F
  int32: 0x49, // I
  double: 0x4e, // N
  oneByteString: 0x22, // "
  twoByteString: 0x63, // c
  padding: 0x00,
  object: 0x6f, // o
  endOfObject: 0x7b, // {
  denseArray: 0x41, // A
  endOfDenseArray: 0x24, // $
  /** How V8 writes an array that has or once had holes: each element after its index. */
  sparseArray: 0x61, // a
  endOfSparseArray: 0x40, // @
  reference: 0x5e, // ^
} as const;

/** Thrown and caught in this file only. */
const NOT_PLAIN = Symbol('not plain');

type Cached = { readonly text: string; readonly start: number; readonly length: number };

class PlainReader implements PackedRest {
  readonly #bytes: Buffer;
  #at = 0;
  /** V8 numbers the objects in the order in which they begin. */
  readonly #objects: object[] = [];
  #depth = 0;
  /** Short strings, mostly keys, by a hash of their bytes: an object's keys come again and again. */
  readonly #strings: (Cached | undefined)[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** @throws RangeError: there are less bytes */
  readRawBytes(length: number): Uint8Array {
    const start = this.#at;
    if (start + length > this.#bytes.length) throw new RangeError('Bytes are missing');
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  readUint32(): number {
    if (this.#at >= this.#bytes.length) throw new RangeError('Bytes are missing');
    return this.varint();
  }

  header(): void {
    if (this.byte() !== TAG.version || this.byte() !== VERSION) throw NOT_PLAIN;
  }

  /** Whether bytes were missing: see `byte`. */
  get isPastEnd(): boolean {
    return this.#at > this.#bytes.length;
  }

  byte(): number {
    // Past the end this is undefined, which is no tag; in `varint` it counts as 0, and ends it.
    // `isPastEnd` tells it afterwards, which is faster than to look at each byte.
    return this.#bytes[this.#at++] as number;
  }

  varint(): number {
    let byte = this.byte();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 28) throw NOT_PLAIN;
      byte = this.byte();
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  }

  value(): unknown {
    let tag = this.byte();
    while (tag === TAG.padding) tag = this.byte();
    switch (tag) {
      case TAG.int32: {
        const zigzag = this.varint();
        return (zigzag >>> 1) ^ -(zigzag & 1);
      }
      case TAG.oneByteString:
        return this.#oneByteString();
      case TAG.object:
        return this.#object();
      case TAG.denseArray:
        return this.#array();
      case TAG.sparseArray:
        return this.#fullSparseArray();
      case TAG.double:
        return this.#double();
      case TAG.true:
        return true;
      case TAG.false:
        return false;
      case TAG.null:
        return null;
      case TAG.undefined:
        return undefined;
      case TAG.twoByteString:
        return this.#twoByteString();
      case TAG.reference: {
        const found = this.#objects[this.varint()];
        if (found === undefined) throw NOT_PLAIN;
        return found;
      }
      default:
        throw NOT_PLAIN;
    }
  }

  #double(): number {
    if (this.#at + 8 > this.#bytes.length) throw NOT_PLAIN;
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  #take(length: number, encoding: 'latin1' | 'utf16le'): string {
    const start = this.#at;
    const end = start + length;
    if (end > this.#bytes.length) throw NOT_PLAIN;
    this.#at = end;
    return this.#bytes.toString(encoding, start, end);
  }

  #twoByteString(): string {
    const length = this.varint();
    if (length % 2 !== 0) throw NOT_PLAIN;
    return this.#take(length, 'utf16le');
  }

  #oneByteString(): string {
    const length = this.varint();
    if (length === 0 || length > LONGEST_CACHED) return this.#take(length, 'latin1');
    const bytes = this.#bytes;
    const start = this.#at;
    const end = start + length;
    if (end > bytes.length) throw NOT_PLAIN;
    const first = bytes[start] as number;
    const last = bytes[end - 1] as number;
    const slot = (first * 7 + last * 31 + length) % CACHED_STRINGS;
    const cached = this.#strings[slot];
    if (cached !== undefined && cached.length === length) {
      let same = 0;
      while (same < length && bytes[cached.start + same] === bytes[start + same]) same += 1;
      if (same === length) {
        this.#at = end;
        return cached.text;
      }
    }
    const text = this.#take(length, 'latin1');
    this.#strings[slot] = { text, start, length };
    return text;
  }

  #enter(object: object): void {
    this.#objects.push(object);
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw NOT_PLAIN;
  }

  #object(): object {
    const object: Record<string, unknown> = {};
    this.#enter(object);
    let count = 0;
    for (let tag = this.byte(); tag !== TAG.endOfObject; tag = this.byte()) {
      if (tag !== TAG.oneByteString) throw NOT_PLAIN;
      const key = this.#oneByteString();
      // Assigned, such a property would call a setter, or fail where Object.prototype is frozen.
      if (key in Object.prototype) throw NOT_PLAIN;
      object[key] = this.value();
      count += 1;
    }
    if (this.varint() !== count) throw NOT_PLAIN;
    this.#depth -= 1;
    return object;
  }

  #array(): unknown[] {
    const length = this.varint();
    const first = this.#bytes[this.#at];
    if (length > MANY_NUMBERS && (first === TAG.int32 || first === TAG.double)) throw NOT_PLAIN;
    // Each element takes a byte and more: so no length asks for more memory than its bytes do.
    if (length > this.#bytes.length - this.#at) throw NOT_PLAIN;
    const array: unknown[] = [];
    this.#enter(array);
    for (let index = 0; index < length; index++) array.push(this.value());
    if (this.byte() !== TAG.endOfDenseArray || this.varint() !== 0 || this.varint() !== length) {
      throw NOT_PLAIN;
    }
    this.#depth -= 1;
    return array;
  }

  /** An array whose elements all are there, in order. */
  #fullSparseArray(): unknown[] {
    const length = this.varint();
    if (length > this.#bytes.length - this.#at) throw NOT_PLAIN;
    const array: unknown[] = [];
    this.#enter(array);
    for (let index = 0; index < length; index++) {
      // The zigzag of an index is its double.
      if (this.byte() !== TAG.int32 || this.varint() !== index * 2) throw NOT_PLAIN;
      array.push(this.value());
    }
    if (this.byte() !== TAG.endOfSparseArray || this.varint() !== length) throw NOT_PLAIN;
    if (this.varint() !== length) throw NOT_PLAIN;
    this.#depth -= 1;
    return array;
  }
}

/** What follows a value that was read: numbers and bytes, as V8's Deserializer gives them. */
interface PackedRest {
  readUint32(): number;
  readRawBytes(length: number): Uint8Array;
}

/** @returns the value at the start of `bytes`, and what follows; undefined: it is not plain */
function readPlain(bytes: Buffer): { value: unknown; rest: PackedRest } | undefined {
  const reader = new PlainReader(bytes);
  try {
    reader.header();
    const value = reader.value();
    return reader.isPastEnd ? undefined : { value, rest: reader };
  } catch (error) {
    if (error === NOT_PLAIN) return undefined;
    throw error;
  }
}
