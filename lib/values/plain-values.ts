/**
 * Reads packed values that are plain: numbers, strings, booleans, null, undefined, arrays without
 * holes, plain objects. They are the most of what calls take, and V8's Deserializer is slow here:
 * its table of objects, which JavaScript cannot clear, keeps all that it has read until the next
 * full collection. (A call to a thread with 10,000 small objects, all in all: 10.9 to 11.5 ms of
 * processor time, here 7.6 to 8.3; with 30: 0.106 to 0.110, here 0.093 to 0.099.)
 * `readPlain` gives up at the first byte that it does not know; then the
 * Deserializer reads all from the start. So the format is V8's alone, and nothing depends on this
 * file but time.
 */

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
export interface PackedRest {
  readUint32(): number;
  readRawBytes(length: number): Uint8Array;
}

/** @returns the value at the start of `bytes`, and what follows; undefined: it is not plain */
export function readPlain(bytes: Buffer): { value: unknown; rest: PackedRest } | undefined {
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
