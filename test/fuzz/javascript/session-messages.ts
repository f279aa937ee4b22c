/** Messages of a session, in both directions: taken whole or refused; what is taken packs to equal. */

import {
  type Packed,
  pack,
  packStop,
  unpackFromNode,
  unpackStop,
  unpackToNode,
} from '../../../lib/nats/wire/session-messages.ts';
import { changeSerialized, must } from './oracle.ts';

export const mutate = changeSerialized;
/** V8 reserves the length that a sparse array says: see "Fuzzing" in docs/testing.md. */
export const takesMemory = true;

/** Compares as bytes: isDeepStrictEqual takes two invalid dates for different. */
function mustKeep<T>(
  read: (...packed: Packed) => T | undefined,
  write: (message: T) => Packed,
  message: T,
  what: string,
): void {
  const packed = write(message);
  const again = read(...packed);
  must(again !== undefined && Buffer.compare(bytesOf(write(again)), bytesOf(packed)) === 0, what);
}

const bytesOf = ([message, attached]: Packed): Buffer => Buffer.concat([message, ...attached]);

export function fuzz(bytes: Uint8Array): void {
  // Some inputs are a message with the last bytes as an attachment.
  const at = bytes.length - (bytes.at(-1) === 0xfe ? Math.min(8, bytes.length) : 0);
  const packed: Packed = [bytes.subarray(0, at), at < bytes.length ? [bytes.subarray(at)] : []];
  const toNode = unpackToNode(...packed);
  if (toNode !== undefined) {
    mustKeep(unpackToNode, pack, toNode, 'a message to a node is kept');
  }
  const fromNode = unpackFromNode(...packed);
  if (fromNode !== undefined) {
    mustKeep(unpackFromNode, pack, fromNode, 'a message of a node is kept');
  }
  must(
    toNode === undefined || fromNode === undefined || toNode.kind === fromNode.kind,
    'a message has one kind',
  );
  const stop = unpackStop(bytes);
  if (stop !== undefined) {
    mustKeep(
      (message) => unpackStop(message),
      (message) => [packStop(message), []],
      stop,
      'a stop is kept',
    );
  }
}
