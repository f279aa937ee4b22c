/** What a worker's result means. */

import { decode } from '../../record/encoded-error.ts';
import type { ClosureOutcome } from '../closures/closure.ts';
import { STATE } from '../worker/protocol.ts';
import { unpackValue } from '../worker/value.ts';

/** `state`, `value`: of the message `results` (protocol.ts). */
export function outcomeOf(state: number, value: unknown, isPacked: boolean): ClosureOutcome {
  if (state !== STATE.ready) return { state: 'failed', value: decode(value as Uint8Array).value };
  if (!isPacked) return { state: 'ready', value };
  try {
    return { state: 'ready', value: unpackValue(value as Uint8Array) };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}
