/** Arguments and results that are moved to the other thread instead of copied. */

import type { Blob } from 'node:buffer';
import type { X509Certificate } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { types } from 'node:util';
import type { MessagePort } from 'node:worker_threads';
import { invalidType } from '../../base/arguments.ts';
import { isObject } from '../../base/thrown-value.ts';
import { refusedValue } from '../../values/lost-values.ts';

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
 * @throws TypeError: `value` is no object, `list` is no array, or has a typed array in the place of
 *   its `buffer`
 */
export function transfer<T extends object>(value: T, list: readonly Movable[]): T {
  if (typeof value !== 'object' || value === null) throw invalidType('value', 'an object', value);
  if (!Array.isArray(list)) throw invalidType('list', 'an Array', list);
  const moved: Movable[] = [...list];
  for (const [at, each] of moved.entries()) {
    if (ArrayBuffer.isView(each))
      throw invalidType(`list[${at}]`, 'an instance of ArrayBuffer', each, 'pass its `buffer`');
  }
  lists.set(value, moved);
  return value;
}

/** Up to this size, copying bytes is as fast as moving their ArrayBuffer. */
const FEW_BYTES = 16 * 1024;

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
 * @throws DataCloneError: one was moved before
 */
export function transferListOf(values: readonly unknown[]): Movable[] {
  const found: Movable[] = [];
  for (const value of values) {
    const list = typeof value === 'object' && value !== null ? lists.get(value) : undefined;
    if (list !== undefined) found.push(...list);
  }
  if (found.length > 0) checkAttached(found);
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
