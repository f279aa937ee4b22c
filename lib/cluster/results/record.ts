/**
 * A stored result as bytes:
 *
 *   MAGIC, 16 bytes; the length of the header, 4 bytes, little-endian; the header, JSON; the value,
 *   packed (worker/value.ts); the SHA-256 of all this, 32 bytes.
 */

import { isBag } from '../../base/arguments.ts';
import { builtin } from '../../base/builtins.ts';

const MAGIC: Buffer = Buffer.from('allstop-result-1', 'latin1');
const PREFIX_BYTES: number = MAGIC.length + 4;
const HASH_BYTES = 32;

/** Which result it is. */
export type Header = {
  /** The name of the function. */
  readonly function: string;
  readonly key: string;
  /** The fingerprint of the module that the function was in. */
  readonly definition: string;
  /** The hash of the arguments (argument-hash.ts). */
  readonly arguments: string;
};

const FIELDS = ['function', 'key', 'definition', 'arguments'] satisfies (keyof Header)[];

/** Why bytes are no record, for people. */
export class NotARecord extends Error {}

/** The name under which the result of a function's key is stored, whatever characters both have. */
export const recordName = (functionName: string, key: string): string =>
  // JSON escapes lone surrogates, which UTF-8 would make equal.
  builtin('node:crypto')
    .createHash('sha256')
    .update(JSON.stringify([functionName, key]))
    .digest('hex');

/** @param value - packed */
export function encodeRecord(header: Header, value: Uint8Array): Uint8Array {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  const record = Buffer.concat([MAGIC, length, json, value, Buffer.alloc(HASH_BYTES)]);
  record.set(hashOf(record), record.length - HASH_BYTES);
  return record;
}

/**
 * @returns the header and the packed value, which shares the memory of the record
 * @throws NotARecord
 */
export function decodeRecord(bytes: Uint8Array): { header: Header; value: Uint8Array } {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = record.length - HASH_BYTES;
  if (end < PREFIX_BYTES) throw new NotARecord(`it has only ${record.length} bytes`);
  if (!record.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new NotARecord('it does not begin as a result of this version');
  }
  if (!record.subarray(end).equals(hashOf(record))) {
    throw new NotARecord('its checksum does not match');
  }
  const at = PREFIX_BYTES + record.readUInt32LE(MAGIC.length);
  const header = at > end ? undefined : parsed(record.subarray(PREFIX_BYTES, at));
  if (header === undefined) throw new NotARecord('its header cannot be read');
  return { header, value: record.subarray(at, end) };
}

const hashOf = (record: Uint8Array): Uint8Array =>
  builtin('node:crypto')
    .createHash('sha256')
    .update(record.subarray(0, record.length - HASH_BYTES))
    .digest();

function parsed(json: Buffer): Header | undefined {
  try {
    const header: unknown = JSON.parse(json.toString());
    const isHeader =
      isBag(header) &&
      FIELDS.every((field) => typeof (header as Partial<Header>)[field] === 'string');
    return isHeader ? (header as Header) : undefined;
  } catch {
    return undefined;
  }
}
