/**
 * How items are written for the queue.
 *
 * The codec 'structured' keeps everything that a structured clone keeps. Small plain values
 * travel as JSON text, which is several times faster to write and to read, but only if JSON gives
 * back the same value as a clone would. All other values go through V8's serializer.
 */

import { inspect } from 'node:util';
import { isProxy } from 'node:util/types';
import { invalidType } from '../base/arguments.ts';
import { builtin, hasSerializer, workerThreads } from '../base/builtins.ts';
import { refusedPart, whyLost } from '../values/lost-values.ts';
import { kindOf } from '../values/walk.ts';

/** An item as JSON text, or as the bytes of V8's serializer. */
export type Written = string | Uint8Array;

const MOST_OBJECTS = 16; // with more objects, isSeen() takes longer than the serializer
const MOST_VALUES = 128;

const seen: unknown[] = Array.from({ length: MOST_OBJECTS }); // only the first `objects` are set
let objects = 0;
let values = 0;
let isBusy = false;

/** Whether JSON carries `value` unchanged: a tree of plain objects, arrays and primitives. */
function isText(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      return value === null || isTextObject(value);
    default:
      return false;
  }
}

function isSeen(value: object): boolean {
  for (let i = 0; i < objects; ++i) if (seen[i] === value) return true;
  return false;
}

function isTextObject(value: object): boolean {
  // An object that is seen twice is no tree: a clone keeps the identity, JSON makes two objects.
  if (objects === MOST_OBJECTS || isSeen(value) || isProxy(value)) return false;
  seen[objects++] = value;
  if ('toJSON' in value) return false;
  if (Array.isArray(value)) {
    values += value.length;
    if (values > MOST_VALUES) return false;
    // By index, as JSON and a clone do: the program may have given the array an iterator.
    for (let i = 0; i < value.length; ++i) if (!isText(value[i])) return false;
    return Object.keys(value).length === value.length; // no holes, no further properties
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  // `in` lists inherited properties, too: one that is no text only sends `value` to the serializer.
  let isEmpty = true;
  for (const key in value) {
    if (++values > MOST_VALUES || !isText((value as Record<string, unknown>)[key])) return false;
    isEmpty = false;
  }
  return !isEmpty || kindOf(value) === 'object'; // a Map, for example, whose prototype was replaced
}

class NotCloneable extends Error {}

function refuseToClone(value: object): never {
  throw new NotCloneable(`${inspect(value, { depth: -1 })} could not be cloned.`);
}

const SERIALIZER_HOOKS = {
  _getDataCloneError: (message: string) => new NotCloneable(message),
  // Without these two methods, V8's own errors would look like errors of a getter of the item.
  _writeHostObject: refuseToClone,
  _getSharedArrayBufferId: refuseToClone,
};

function serializeInBun(value: unknown): Uint8Array {
  try {
    return builtin('node:v8').serialize(value);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    throw new NotCloneable(error.message);
  }
}

function serialize(value: unknown): Uint8Array {
  if (!hasSerializer) return serializeInBun(value);
  const serializer = Object.assign(new (builtin('node:v8').Serializer)(), SERIALIZER_HOOKS);
  serializer.writeHeader();
  serializer.writeValue(value);
  const bytes = serializer.releaseBuffer();
  const why = whyLost(value, bytes);
  if (why !== undefined) throw new NotCloneable(why);
  return bytes;
}

function serializeItem(item: unknown): Uint8Array {
  try {
    return serialize(item);
  } catch (error) {
    if (!(error instanceof NotCloneable)) throw error; // thrown by a getter of the item
    const { path, value } = refusedPart({ path: 'item', value: item }, serialize);
    const refused = invalidType(path, 'a value that can be cloned', value);
    throw Object.assign(refused, { cause: error });
  }
}

/** @throws TypeError (`ERR_INVALID_ARG_TYPE`): `value` cannot be cloned; any error of a getter */
export function writeValue(value: unknown): Written {
  if (isBusy) return serializeItem(value); // called by a getter of the item that isText() reads
  isBusy = true;
  try {
    if (isText(value)) return JSON.stringify(value);
  } catch (error) {
    // A RangeError means that the JSON text is too long for a string: serializeItem() takes it.
    if (!(error instanceof RangeError)) throw error;
  } finally {
    while (objects > 0) seen[--objects] = undefined;
    values = 0;
    isBusy = false;
  }
  return serializeItem(value);
}

function readSerialized(bytes: Uint8Array): unknown {
  if (!hasSerializer) return builtin('node:v8').deserialize(bytes);
  const deserializer = new (builtin('node:v8').Deserializer)(bytes);
  deserializer.readHeader();
  return deserializer.readValue();
}

export function readValue(written: Written): unknown {
  return typeof written === 'string' ? JSON.parse(written) : readSerialized(written);
}

/** Reads the result of `NativeQueue.dequeueMany` of a queue with the codec 'structured'. */
export function readValues(written: string | unknown[]): unknown[] {
  if (typeof written === 'string') return JSON.parse(written);
  const items = (written[0] as string[]).flatMap((text): unknown[] => JSON.parse(text));
  for (let i = 1; i < written.length; i += 2) {
    items[written[i] as number] = readValue(written[i + 1] as Written);
  }
  return items;
}

/** Reads the result of `NativeQueue.dequeueMany` of a queue with the codec 'bytes'. */
export function readBytes(runs: unknown[]): Uint8Array[] {
  const sizes = runs[0] as Float64Array;
  const items: Uint8Array[] = [];
  for (let i = 1; i < runs.length; i += 2) {
    const buffer = runs[i] as ArrayBuffer;
    const end = items.length + (runs[i + 1] as number);
    // Several items share this buffer: transferring one of them would detach the others.
    if (runs[i + 1] !== 1) workerThreads().markAsUntransferable(buffer);
    for (let offset = 0; items.length < end; ) {
      const size = sizes[items.length] as number;
      items.push(new Uint8Array(buffer, offset, size));
      offset += (size + 7) & ~7;
    }
  }
  return items;
}
