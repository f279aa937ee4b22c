/**
 * How items are written for the queue.
 *
 * 'structured' keeps what a structured clone keeps. Small plain values travel as JSON
 * text, which is several times faster to write and to read; only what comes out of it
 * the same as out of a clone does. All else goes through V8's serializer.
 */

import { inspect } from 'node:util';
import { isProxy } from 'node:util/types';
import { Deserializer, Serializer } from 'node:v8';
import { markAsUntransferable } from 'node:worker_threads';
import { invalidType } from '../base/arguments.ts';

/** Text, or what the serializer wrote. */
export type Written = string | Uint8Array;

const MOST_OBJECTS = 16; // beyond that, comparing all of them takes longer than the serializer
const MOST_VALUES = 128;

const seen: unknown[] = Array.from({ length: MOST_OBJECTS }); // the first `objects`
let objects = 0;
let values = 0;
let isBusy = false;

/** Whether JSON carries it unchanged: a tree of plain objects, arrays, and primitives. */
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
  // Seen twice: a clone keeps that it is one object.
  if (objects === MOST_OBJECTS || isSeen(value) || isProxy(value)) return false;
  seen[objects++] = value;
  if ('toJSON' in value) return false;
  if (Array.isArray(value)) {
    values += value.length;
    if (values > MOST_VALUES) return false;
    for (const item of value) if (!isText(item)) return false;
    return Object.keys(value).length === value.length; // no holes, nothing beside the items
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  // Inherited ones, too: harmless, as then it is for the serializer.
  for (const key in value) {
    if (++values > MOST_VALUES || !isText((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

class NotCloneable extends Error {}

function refuseToClone(value: object): never {
  throw new NotCloneable(`${inspect(value, { depth: -1 })} could not be cloned.`);
}

class ValueSerializer extends Serializer {}
Object.assign(ValueSerializer.prototype, {
  _getDataCloneError: (message: string) => new NotCloneable(message),
  // Without these, V8 throws errors that cannot be told from a getter's own.
  _writeHostObject: refuseToClone,
  _getSharedArrayBufferId: refuseToClone,
});

function serialize(value: unknown): Uint8Array {
  const serializer = new ValueSerializer();
  serializer.writeHeader();
  try {
    serializer.writeValue(value);
  } catch (error) {
    if (!(error instanceof NotCloneable)) throw error; // a getter's own
    throw Object.assign(invalidType('item', 'a value that can be cloned', value), {
      cause: error,
    });
  }
  return serializer.releaseBuffer();
}

/** @throws TypeError (`ERR_INVALID_ARG_TYPE`): it cannot be cloned; or what a getter throws */
export function writeValue(value: unknown): Written {
  if (isBusy) return serialize(value); // a getter of what is being looked at has called us
  isBusy = true;
  try {
    if (isText(value)) return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // else escaped it is longer than any string
  } finally {
    while (objects > 0) seen[--objects] = undefined;
    values = 0;
    isBusy = false;
  }
  return serialize(value);
}

function readSerialized(bytes: Uint8Array): unknown {
  const deserializer = new Deserializer(bytes);
  deserializer.readHeader();
  return deserializer.readValue();
}

export function readValue(written: Written): unknown {
  return typeof written === 'string' ? JSON.parse(written) : readSerialized(written);
}

/** What `NativeQueue.dequeueMany` has come to, of a queue of values. */
export function readValues(written: string | unknown[]): unknown[] {
  if (typeof written === 'string') return JSON.parse(written);
  const items: unknown[] = JSON.parse(written[0] as string);
  for (let i = 1; i < written.length; i += 2) {
    items[written[i] as number] = readValue(written[i + 1] as Written);
  }
  return items;
}

/** The same of a queue of bytes. */
export function readBytes(runs: unknown[]): Uint8Array[] {
  const sizes = runs[0] as Float64Array;
  const items: Uint8Array[] = [];
  for (let i = 1; i < runs.length; i += 2) {
    const buffer = runs[i] as ArrayBuffer;
    const end = items.length + (runs[i + 1] as number);
    // Who gives one item away must not take the others with it.
    if (runs[i + 1] !== 1) markAsUntransferable(buffer);
    for (let offset = 0; items.length < end; ) {
      const size = sizes[items.length] as number;
      items.push(new Uint8Array(buffer, offset, size));
      offset += (size + 7) & ~7;
    }
  }
  return items;
}
