/** The encoded error: read as a value or refused by a TypeError; a value that was read is kept. */

import { decode, encode } from '../../../lib/record/encoded-error.ts';
import { changeSerialized, must, type Random, refusal } from './oracle.ts';

/** V8 reserves the length that a sparse array says: see "Fuzzing" in docs/testing.md. */
export const takesMemory = true;

const GRAPH = 8; // the tag of the field that JavaScript reads

/** Changes a value inside the graph of an encoded error, and corrects the length before it. */
export function mutate(bytes: Uint8Array, random: Random): Uint8Array | undefined {
  const buffer = Buffer.from(bytes);
  for (let at = 4; at + 5 <= buffer.length; ) {
    const end = at + 5 + buffer.readUInt32LE(at + 1);
    if (end > buffer.length) return undefined;
    if (buffer[at] === GRAPH) {
      const graph = changeSerialized(buffer.subarray(at + 5, end), random);
      if (graph === undefined) return undefined;
      const head = Buffer.from(buffer.subarray(0, at + 5));
      head.writeUInt32LE(graph.length, at + 1);
      return Buffer.concat([head, graph, buffer.subarray(end)]);
    }
    at = end;
  }
  return undefined;
}

export function fuzz(bytes: Uint8Array): void {
  let carried: { id: string; value: unknown } | undefined;
  refusal(() => {
    carried = decode(bytes);
  }, TypeError);
  if (carried === undefined) return;
  must(typeof carried.id === 'string' && carried.id !== '', 'an error has an id');
  must(Object.is(decode(bytes).value, carried.value), 'the same bytes are the same error');
  const encoded = encode(carried.value);
  const again = decode(encoded.bytes);
  must(
    Object.is(again.value, carried.value) || !isObject(carried.value),
    'an error keeps its identity',
  );
  if (!isObject(carried.value)) return;
  must(encoded.carried.id === again.id, 'an error keeps its id');
  const { value } = carried;
  if (value instanceof Error) {
    must(Object.getPrototypeOf(value) !== Object.prototype, 'an error has a class');
    must(!Object.hasOwn(Error.prototype, 'polluted'), 'no class is changed');
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
