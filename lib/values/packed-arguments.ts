/**
 * The arguments of a call as bytes, and back.
 *
 * The bytes are: what V8's Serializer makes of the array of arguments; then a table of the bare
 * typed arrays and ArrayBuffers among the arguments (how many; then for each its index, its kind
 * and its length in bytes); then their bytes, in the order of the table. So the bytes of a bare
 * array are copied once when they are packed, and only that part of its ArrayBuffer which it shows.
 */

import { builtin } from '../base/builtins.ts';
import { classOf } from '../base/typed-arrays.ts';
import { type PackedRest, readPlain } from './plain-values.ts';
import { hasSerializer, SERIALIZER_HOOKS, unreadable } from './value.ts';

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
  if (!isView && !(value instanceof ArrayBuffer)) return undefined;
  const tag = isView ? classOf(value) : 'ArrayBuffer';
  const kind = tag === undefined ? undefined : KIND_OF.get(tag);
  const buffer: ArrayBufferLike & { resizable?: boolean } = isView ? value.buffer : value;
  if (kind === undefined || !(buffer instanceof ArrayBuffer) || buffer.resizable === true) {
    return undefined;
  }
  const { byteLength } = value;
  if (byteLength === 0 || byteLength > UINT32_MAX) return undefined;
  const bytes = new Uint8Array(buffer, isView ? value.byteOffset : 0, byteLength);
  return { index, kind, bytes };
}

/** The hooks are assigned to each serializer, since Bun has no class to extend. */
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
  const serializer = Object.assign(new (builtin('node:v8').Serializer)(), ARGUMENT_HOOKS);
  serializer.writeHeader();
  serializer.writeValue(args);
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

/** @throws DataCloneError; TypeError: the bytes hold no array */
export function receivedArguments(args: PassedArguments): readonly unknown[] {
  if (args instanceof ArrayBuffer) return unpackArguments(new Uint8Array(args));
  return args instanceof Uint8Array ? unpackArguments(args) : args;
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
function unpackArguments(packed: Uint8Array): unknown[] {
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
