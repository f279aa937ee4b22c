/** The outcome of a closure, read from its worker's message. */

import { decode } from '../../record/encoded-error.ts';
import type { ClosureOutcome } from '../closures/closure.ts';
import { STATE } from '../worker/protocol.ts';
import { unpackValue } from '../worker/value.ts';

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
