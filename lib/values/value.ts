/**
 * Packs arguments and results as bytes for another process, with the semantics of
 * structuredClone. Uses V8's Serializer itself, not Node's `v8.serialize`: a typed array unpacked
 * from that is a view of the whole message, and keeps its memory.
 */

import { builtin } from '../base/builtins.ts';
import { checkKept } from './lost-values.ts';

/** Whether there are Serializer and Deserializer. Bun has only `serialize` and `deserialize`. */
export const hasSerializer: boolean = process.versions['bun'] === undefined;

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
export const SERIALIZER_HOOKS = {
  _getDataCloneError: (message: string): Error => new DOMException(message, 'DataCloneError'),
  _writeHostObject: ({ constructor }: object): never => {
    throw new DOMException(`#<${constructor.name}> could not be cloned.`, 'DataCloneError');
  },
  _getSharedArrayBufferId: (): never => {
    throw new DOMException('#<SharedArrayBuffer> could not be cloned.', 'DataCloneError');
  },
};

function pack(value: unknown): Buffer {
  const serializer = Object.assign(new (builtin('node:v8').Serializer)(), SERIALIZER_HOOKS);
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer.releaseBuffer();
}

/**
 * @throws DataCloneError: the bytes are malformed; or another version of Node has packed them,
 *   whose encoding this one cannot read (an Error with a cause from Node 20 in later versions,
 *   types that this version does not have); or the value is nested too deeply for this
 *   thread's stack
 */
export function unpackValue(bytes: Uint8Array): unknown {
  try {
    if (!hasSerializer) return builtin('node:v8').deserialize(bytes);
    const deserializer = new (builtin('node:v8').Deserializer)(bytes);
    deserializer.readHeader();
    return deserializer.readValue();
  } catch (error) {
    throw unreadable(error);
  }
}

/** The error for bytes that a deserializer has refused with `error`. */
export function unreadable(error: unknown): DOMException {
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
