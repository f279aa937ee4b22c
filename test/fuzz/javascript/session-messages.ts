/** Messages of a session, in both directions: taken whole or refused; what is taken packs to equal. */

import {
  pack,
  packStop,
  unpackFromNode,
  unpackStop,
  unpackToNode,
} from '../../../lib/cluster/nats/wire/session-messages.ts';
import { changeSerialized, must } from './oracle.ts';

export const mutate = changeSerialized;
/** V8 reserves the length that a sparse array says: see "Fuzzing" in docs/testing.md. */
export const takesMemory = true;

/** Compares as bytes: isDeepStrictEqual takes two invalid dates for different. */
function mustKeep<T>(
  read: (bytes: Uint8Array) => T | undefined,
  write: (message: T) => Uint8Array,
  message: T,
  what: string,
): void {
  const packed = write(message);
  const again = read(packed);
  must(again !== undefined && Buffer.compare(write(again), packed) === 0, what);
}

export function fuzz(bytes: Uint8Array): void {
  const toNode = unpackToNode(bytes);
  if (toNode !== undefined) {
    mustKeep(unpackToNode, pack, toNode, 'a message to a node is kept');
  }
  const fromNode = unpackFromNode(bytes);
  if (fromNode !== undefined) {
    mustKeep(unpackFromNode, pack, fromNode, 'a message of a node is kept');
  }
  must(
    toNode === undefined || fromNode === undefined || toNode[0] === (fromNode[0] as string),
    'a message has one kind',
  );
  const stop = unpackStop(bytes);
  if (stop !== undefined) {
    mustKeep(unpackStop, packStop, stop, 'a stop is kept');
  }
}
