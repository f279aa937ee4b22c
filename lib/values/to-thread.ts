/**
 * How arguments and results go to another thread: what is moved there, and how copied arguments stay
 * here for another attempt.
 *
 * `postMessage` copies the bytes of an ArrayBuffer twice: into its message, and out of it in the
 * other thread. Many bytes are copied once instead, and that copy is moved. They cannot be moved
 * themselves, because they would be lost with the worker. Nor can they be a SharedArrayBuffer:
 * V8 does not count its memory, so that too late a collection frees it (4,000 calls of 1 MB took
 * 2.3 GB instead of 82 MB, and four times the processor time).
 */

import type { Blob } from 'node:buffer';
import type { X509Certificate } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { types } from 'node:util';
import type { MessagePort } from 'node:worker_threads';
import { invalidType, invalidValue } from '../base/arguments.ts';
import { isObject } from '../base/thrown-value.ts';
import { refusedValue } from './lost-values.ts';
import {
  type BareArray,
  bareArray,
  ownArray,
  type PassedArguments,
  unpackArguments,
} from './value.ts';

/** Up to this size, copying bytes twice is as fast as moving an ArrayBuffer. */
const FEW_BYTES = 16 * 1024;

/**
 * What can be moved to another thread. A type of ours, because @types/node has it under one name up
 * to version 25 (TransferListItem) and under another from 26 on (Transferable), whose members differ: postMessage gets it by a cast.
 */
export type Movable = ArrayBuffer | MessagePort | FileHandle | X509Certificate | Blob;

const lists = new WeakMap<object, readonly Movable[]>();

/**
 * Marks the objects of `list` (ArrayBuffers, MessagePorts), which `value` contains, to be moved
 * instead of copied when `value` is an argument of `schedule` or the result of a scheduled
 * function, between threads. A part of an argument or result is copied. The sender can no longer use
 * them. The mark stays until they are moved, also when a call is refused. A function whose arguments were
 * moved to a worker that then died cannot run again: it fails with UnavailableError. Between
 * processes everything is copied.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, LocalStrategy, transfer } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const size = (bytes) => bytes.length');
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
 * const bytes = new Uint8Array(1_000_000);
 * console.log(await cluster.run('size', [transfer(bytes, [bytes.buffer])])); // 1000000
 * console.log(bytes.length); // 0: the worker has them
 * await cluster.close();
 * ```
 * @returns `value`
 * @throws TypeError: `value` is no object, `list` is no array, has an object twice, or has a typed
 *   array in the place of its `buffer`
 */
export function transfer<T extends object>(value: T, list: readonly Movable[]): T {
  if (typeof value !== 'object' || value === null) throw invalidType('value', 'an object', value);
  if (!Array.isArray(list)) throw invalidType('list', 'an Array', list);
  const moved: Movable[] = [...list];
  for (const [at, each] of moved.entries()) {
    if (ArrayBuffer.isView(each))
      throw invalidType(`list[${at}]`, 'an instance of ArrayBuffer', each, 'pass its `buffer`');
  }
  checkOnce(moved);
  lists.set(value, moved);
  return value;
}

/** @throws TypeError (`ERR_INVALID_ARG_VALUE`) */
function checkOnce(moved: readonly Movable[]): void {
  if (new Set(moved).size === moved.length) return;
  throw invalidValue('An object moves only once: the lists of transfer() have one twice');
}

/**
 * Prepares bytes for `postMessage`, which copies the whole ArrayBuffer behind them. Many bytes
 * get an ArrayBuffer of their own, which is moved. Few bytes are copied into Node's Buffer pool,
 * so that the few bytes of several values in one message share an ArrayBuffer.
 */
export function toPost(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength <= FEW_BYTES) return Buffer.from(bytes);
  const isAlone = bytes.byteLength === bytes.buffer.byteLength;
  const own = isAlone ? bytes : new Uint8Array(bytes);
  return transfer(own, [own.buffer as ArrayBuffer]);
}

/** @throws DataCloneError: one was moved before; Node 20 would pass it as an empty ArrayBuffer */
export function checkAttached(moved: readonly Movable[]): void {
  for (const each of moved) {
    if (!(each instanceof ArrayBuffer) || each.byteLength > 0) continue;
    try {
      new Uint8Array(each);
    } catch {
      const why = 'An ArrayBuffer is detached and could not be cloned.';
      throw new DOMException(why, 'DataCloneError');
    }
  }
}

/**
 * The objects that `transfer` has marked in these values; nested values are not searched.
 *
 * @throws DataCloneError: one was moved before; TypeError: one is marked twice
 */
export function transferListOf(values: readonly unknown[]): Movable[] {
  const found: Movable[] = [];
  for (const value of values) {
    const list = typeof value === 'object' && value !== null ? lists.get(value) : undefined;
    if (list !== undefined) found.push(...list);
  }
  if (found.length > 0) {
    checkOnce(found);
    checkAttached(found);
  }
  return found;
}

/** The error for a result that `clone` has refused. */
export function refusedResult(
  error: unknown,
  value: unknown,
  clone: (value: unknown) => unknown,
): unknown {
  // `clone` moves nothing: it would refuse the objects that are moved, too.
  if (isObject(value) && lists.has(value)) return error;
  if (types.isGeneratorObject(value)) {
    const text = `The result cannot be cloned: it is a generator. Tell the caller of each value by currentCall().report(value) (onProgress), or return an array`;
    return new DOMException(text, 'DataCloneError');
  }
  return refusedValue(error, 'The result', { path: 'result', value }, clone);
}

// Copied arguments.

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

/** @throws DataCloneError; TypeError: the bytes hold no array */
export function receivedArguments(args: PassedArguments): readonly unknown[] {
  if (args instanceof ArrayBuffer) return unpackArguments(new Uint8Array(args));
  return args instanceof Uint8Array ? unpackArguments(args) : args;
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
  if (typeof value === 'string') return value.length;
  return isObject(value) || typeof value === 'symbol' ? undefined : BYTES_OF_A_NUMBER;
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
