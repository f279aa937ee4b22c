/**
 * How the copied arguments of a call go to a worker thread, and stay here for another attempt.
 *
 * `postMessage` copies the bytes of an ArrayBuffer twice: into its message, and out of it in the
 * other thread. Many bytes are copied once instead, and that copy is moved. They cannot be moved
 * themselves, because they would be lost with the worker. Nor can they be a SharedArrayBuffer:
 * V8 does not count its memory, so that too late a collection frees it (4,000 calls of 1 MB took
 * 2.3 GB instead of 82 MB, and four times the processor time).
 */

import { types } from 'node:util';
import { type BareArray, bareArray, ownArray, type PassedArguments } from './packed-arguments.ts';

/** Up to this size, copying bytes twice is as fast as moving an ArrayBuffer. */
const FEW_BYTES = 16 * 1024;

/** Arguments of which each is a primitive value, or an array with an ArrayBuffer of its own. */
const flat = new WeakSet<readonly unknown[]>();

const MOST_SPARE_BYTES = 64 * 2 ** 20;
/**
 * ArrayBuffers of calls that have ended, for the copies of other calls. An ArrayBuffer that is new
 * gets its memory from the system, which clears it page by page: for 1 MB that takes longer than to
 * copy the bytes. The last ones that were given are the last here, and no two are the same.
 */
const spare: ArrayBuffer[] = [];
let spareBytes = 0;

function takeSpare(length: number): ArrayBuffer | undefined {
  const at = spare.findLastIndex(({ byteLength }) => byteLength === length);
  if (at < 0) return undefined;
  spareBytes -= length;
  return spare.splice(at, 1)[0];
}

/** The pools of this thread: with the last one `spare` goes. */
const users = new Set<object>();

/** `pool` may copy arguments from now on. */
export function useSpare(pool: object): void {
  users.add(pool);
}

/** `pool` is closed. */
export function leaveSpare(pool: object): void {
  users.delete(pool);
  if (users.size > 0) return;
  spare.length = 0;
  spareBytes = 0;
}

function giveSpare(buffer: ArrayBuffer): void {
  if (users.size === 0) return;
  const { byteLength } = buffer;
  if (byteLength <= FEW_BYTES || byteLength > MOST_SPARE_BYTES) return;
  spare.push(buffer);
  spareBytes += byteLength;
  while (spareBytes > MOST_SPARE_BYTES) spareBytes -= spare.shift()?.byteLength ?? spareBytes;
}

/**
 * Copies arguments of which each is primitive or a bare array.
 *
 * @param values - `undefined` in place of each bare array; is changed
 */
export function copyFlat(values: unknown[], bare: readonly BareArray[]): readonly unknown[] {
  for (const array of bare) {
    values[array.index] = ownArray(array, takeSpare(array.bytes.byteLength));
  }
  flat.add(values);
  return values;
}

/** No attempt follows with these arguments of a call, which were sent to no worker themselves. */
export function releaseArguments(args: PassedArguments): void {
  // Released arguments leave `flat`: a second release must not give the same buffers again.
  if (!Array.isArray(args) || !flat.delete(args)) return;
  for (const value of args as unknown[]) {
    if (value instanceof ArrayBuffer) giveSpare(value);
    else if (ArrayBuffer.isView(value)) giveSpare(value.buffer as ArrayBuffer);
  }
}

/** @returns what is posted, and what of it moves */
export function toThread(args: PassedArguments): {
  readonly args: PassedArguments;
  readonly moved: readonly ArrayBuffer[];
} {
  if (args instanceof ArrayBuffer) {
    if (args.byteLength <= FEW_BYTES) return { args, moved: [] };
    const own = ownArray({ index: 0, kind: 0, bytes: new Uint8Array(args) }) as ArrayBuffer;
    return { args: own, moved: [own] };
  }
  if (!Array.isArray(args) || !flat.has(args)) return { args, moved: [] };
  const moved: ArrayBuffer[] = [];
  const posted = args.map((value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    const bare = bareArray(value, 0);
    if (bare === undefined || bare.bytes.byteLength <= FEW_BYTES) return value;
    const own = ownArray(bare);
    moved.push(own instanceof ArrayBuffer ? own : (own.buffer as ArrayBuffer));
    return own;
  });
  return { args: posted, moved };
}

// Copies small plain values, which is cheaper than any serializer. A larger or stranger value is
// left to a serializer: no getter was called and no proxy's trap, and at most MAX_PROPERTIES
// properties were read.

const MAX_PROPERTIES = 24;
const BYTES_OF_A_NUMBER = 8;

export type SmallCopy = {
  readonly values: unknown[];
  /** About how many bytes the values take. */
  readonly bytes: number;
};

/** About how many bytes a primitive value takes; undefined for a symbol, function or object. */
export function bytesOfPrimitive(value: unknown): number | undefined {
  switch (typeof value) {
    case 'string':
      return value.length;
    case 'symbol':
    case 'function':
      return undefined;
    case 'object':
      return value === null ? BYTES_OF_A_NUMBER : undefined;
    default:
      return BYTES_OF_A_NUMBER;
  }
}

class Copier {
  bytes = 0;
  #left = MAX_PROPERTIES;
  /** The objects that were met: a second reference to one of them has to stay the same object. */
  readonly #seen: object[] = [];
  readonly #onError: ((error: Error) => void) | undefined;

  constructor(onError: ((error: Error) => void) | undefined) {
    this.#onError = onError;
  }

  /** @returns false if the value is not small and plain */
  copy(from: object, to: unknown[] | Record<string, unknown>): boolean {
    if (this.#seen.includes(from)) return false;
    this.#seen.push(from);
    const keys = Object.keys(from);
    // An array with holes, or with properties beside its elements, is left to a serializer.
    if (Array.isArray(from) && keys.length !== from.length) return false;
    this.#left -= keys.length;
    if (this.#left < 0) return false;
    for (const key of keys) {
      const property = Object.getOwnPropertyDescriptor(from, key);
      if (property === undefined || !('value' in property) || key === '__proto__') return false;
      const { value }: { value?: unknown } = property;
      const bytes = bytesOfPrimitive(value);
      let own = value;
      if (bytes === undefined) {
        if (types.isNativeError(value)) this.#onError?.(value);
        own = emptyLike(value);
        if (own === undefined || !this.copy(value as object, own as unknown[])) return false;
      } else this.bytes += bytes;
      (to as Record<string, unknown>)[key] = own;
      this.bytes += key.length;
    }
    return true;
  }
}

/** An empty object of the same kind; undefined unless the value is a plain object or array. */
function emptyLike(value: unknown): unknown[] | Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || types.isProxy(value)) return undefined;
  const isArray = Array.isArray(value);
  // An array's keys are counted below: of a long one this alone would take long.
  if (isArray && value.length > MAX_PROPERTIES) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (isArray) return prototype === Array.prototype ? [] : undefined;
  return prototype === Object.prototype ? {} : undefined;
}

/**
 * @param onError - called with an error that was met
 * @returns undefined unless all values are small and plain
 */
export function smallCopy(
  values: readonly unknown[],
  onError?: (error: Error) => void,
): SmallCopy | undefined {
  if (values.length > MAX_PROPERTIES) return undefined;
  const copier = new Copier(onError);
  const copies: unknown[] = [];
  return copier.copy(values, copies) ? { values: copies, bytes: copier.bytes } : undefined;
}
