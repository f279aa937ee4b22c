/**
 * Arguments and results as bytes. As by structuredClone: with V8's own encoding of memory,
 * not Node's, whose views would all be of the message's memory.
 */

import { Deserializer, Serializer } from 'node:v8';

/** @throws Error: it cannot be cloned */
export function packValue(value: unknown): Uint8Array {
  const serializer = new Serializer();
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer.releaseBuffer();
}

/**
 * @throws DataCloneError: these are no such bytes, or of a Node whose V8 writes what this one
 *   cannot read: an Error with a cause from Node 20 to later ones, what is newer than a Node
 */
export function unpackValue(bytes: Uint8Array): unknown {
  try {
    const deserializer = new Deserializer(bytes);
    deserializer.readHeader();
    return deserializer.readValue();
  } catch {
    throw new DOMException(
      `A value cannot be read by Node ${process.version}: does the other machine have another version?`,
      'DataCloneError',
    );
  }
}
