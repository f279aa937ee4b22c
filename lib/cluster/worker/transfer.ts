/** Arguments and results that are moved to the other thread instead of copied. */

import type { TransferListItem } from 'node:worker_threads';
import { invalidType } from '../../base/arguments.ts';

const lists = new WeakMap<object, readonly TransferListItem[]>();

/**
 * `value`, of which `list` (ArrayBuffers, MessagePorts) is to be moved when it becomes an
 * argument of `schedule`, or the result of a scheduled function, of threads. The sender has
 * them no longer. A function whose arguments were moved to a worker that then died cannot be
 * run again: it fails with UnavailableError. Between processes all is copied.
 */
export function transfer<T extends object>(value: T, list: readonly TransferListItem[]): T {
  if (typeof value !== 'object' || value === null) throw invalidType('value', 'an object', value);
  if (!Array.isArray(list)) throw invalidType('list', 'an Array', list);
  lists.set(value, [...list]);
  return value;
}

/** So many bytes are copied as soon as moved. */
const FEW_BYTES = 16 * 1024;

/**
 * Bytes for another thread, which gets all the memory that they are a part of. Many have it
 * for themselves, and are moved; few are put into Node's pool, where those that go as one
 * message are together.
 */
export function toPost(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength <= FEW_BYTES) return Buffer.from(bytes);
  const isAlone = bytes.byteLength === bytes.buffer.byteLength;
  const own = isAlone ? bytes : new Uint8Array(bytes);
  return transfer(own, [own.buffer as ArrayBuffer]);
}

/** What is to be moved of these values, which are looked at themselves, not what is in them. */
export function transferListOf(values: readonly unknown[]): TransferListItem[] {
  const found: TransferListItem[] = [];
  for (const value of values) {
    const list = typeof value === 'object' && value !== null ? lists.get(value) : undefined;
    if (list !== undefined) found.push(...list);
  }
  return found;
}
