/**
 * Arguments and results as bytes, on their way to another process. As by structuredClone: with
 * V8's own encoding of memory, not Node's, whose views are all of the message's memory.
 */

import { Deserializer, deserialize, Serializer, serialize } from 'node:v8';

/** Bun has only the functions; there they do what the classes do elsewhere. */
const hasClasses = process.versions['bun'] === undefined;

/** @throws Error: it cannot be cloned */
export function packValue(value: unknown): Uint8Array {
  if (!hasClasses) return serialize(value);
  const serializer = new Serializer();
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer.releaseBuffer();
}

/**
 * @throws DataCloneError: these are no such bytes, or of a Node whose V8 writes what this one
 *   cannot read: an Error with a cause from Node 20 to later ones, what is newer than a Node;
 *   or they are nested too deeply for the stack of this thread
 */
export function unpackValue(bytes: Uint8Array): unknown {
  try {
    if (!hasClasses) return deserialize(bytes);
    const deserializer = new Deserializer(bytes);
    deserializer.readHeader();
    return deserializer.readValue();
  } catch (error) {
    const why =
      error instanceof RangeError
        ? `: ${error.message}`
        : `, by Node ${process.version}: does the other machine have another version?`;
    throw new DOMException(`A value cannot be read here${why}`, 'DataCloneError');
  }
}

/** @throws DataCloneError; TypeError: they are no array */
export function unpackArgs(args: readonly unknown[] | Uint8Array): readonly unknown[] {
  if (!(args instanceof Uint8Array)) return args;
  const own = unpackValue(args);
  if (!Array.isArray(own)) throw new TypeError('The arguments are no array');
  return own;
}

/** A message of ours; undefined: it is the module's own. */
export function unpackMessage(message: unknown): unknown[] | undefined {
  if (!(message instanceof Uint8Array)) return undefined;
  try {
    const own = unpackValue(message);
    return Array.isArray(own) ? own : undefined;
  } catch {
    return undefined;
  }
}
