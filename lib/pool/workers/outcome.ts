/** The outcome of a closure, read from its worker's message. */

import { messageOf } from '../../base/thrown-value.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { unpackValue } from '../../values/value.ts';
import type { ClosureOutcome } from '../queue/closure.ts';
import { STATE } from '../worker/protocol.ts';

/** `isValue`: a result is a value already, not bytes of another process. */
export function outcomeOf(state: number, value: unknown, isValue: boolean): ClosureOutcome {
  if (state !== STATE.ready) return { state: 'failed', value: decode(value as Uint8Array).value };
  if (isValue) return { state: 'ready', value };
  try {
    return { state: 'ready', value: unpackValue(value as Uint8Array) };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}

/** The encoded error of a result that cannot be deserialized here. */
export function unreadable(error: unknown): Uint8Array {
  const text = `A result cannot be read here: ${messageOf(error)}`;
  return encode(new DOMException(text, 'DataCloneError')).bytes;
}
