/**
 * How the copied arguments of a call go to a worker thread, and stay here for another attempt.
 *
 * `postMessage` copies the bytes of an ArrayBuffer twice: into its message, and out of it in the
 * other thread. Many bytes are copied once instead, and that copy is moved. They cannot be moved
 * themselves, because they would be lost with the worker. Nor can they be a SharedArrayBuffer:
 * V8 does not count its memory, so that too late a collection frees it (4,000 calls of 1 MB took
 * 2.3 GB instead of 82 MB, and four times the processor time).
 */

import type { PassedArguments } from '../protocol.ts';
import { bareArray, ownArray } from './packed-arguments.ts';

/** Up to this size, copying bytes twice is as fast as moving an ArrayBuffer. */
const FEW_BYTES = 16 * 1024;

/** Arguments of which each is a primitive value, or an array with an ArrayBuffer of its own. */
const flat = new WeakSet<readonly unknown[]>();

/** Marks values of which each is primitive, or a typed array or ArrayBuffer of nobody else's. */
export function markFlat(values: readonly unknown[]): readonly unknown[] {
  flat.add(values);
  return values;
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
