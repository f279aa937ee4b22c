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

/** @throws Error: these are no such bytes */
export function unpackValue(bytes: Uint8Array): unknown {
  const deserializer = new Deserializer(bytes);
  deserializer.readHeader();
  return deserializer.readValue();
}
