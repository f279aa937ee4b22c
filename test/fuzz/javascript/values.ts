/** Arguments and results as bytes: read as a value, or refused by the documented error. */

import { receivedArguments } from '../../../lib/values/to-thread.ts';
import { packValue, unpackMessage, unpackValue } from '../../../lib/values/value.ts';
import { changeSerialized, must, refusal } from './oracle.ts';

export const mutate = changeSerialized;
/** V8 reserves the length that a sparse array says: see "Fuzzing" in docs/testing.md. */
export const takesMemory = true;

function isDataCloneError(error: Error | undefined): boolean {
  return error === undefined || error.name === 'DataCloneError';
}

export function fuzz(bytes: Uint8Array): void {
  let value: unknown;
  const refused = refusal(() => {
    value = unpackValue(bytes);
  }, DOMException);
  must(isDataCloneError(refused), 'malformed bytes are a DataCloneError');
  const message = unpackMessage(bytes);
  const refusedArgs = refusal(() => void receivedArguments(bytes), DOMException, TypeError);
  if (refused !== undefined) {
    must(message === undefined, 'malformed bytes are no message');
    must(isDataCloneError(refusedArgs), 'malformed bytes are no arguments');
    return;
  }
  must((value === undefined) === (message === undefined), 'a message is any value');
  must(refusedArgs !== undefined || Array.isArray(value), 'arguments are an array');
  if (Array.isArray(value) && value.length > bytes.length) return; // sparse: takes long to compare
  let packed: Uint8Array;
  try {
    packed = packValue(value);
  } catch (error) {
    // A value nested deeply can be read, but not be written.
    must(error instanceof RangeError || (error as Error).name === 'DataCloneError', String(error));
    return;
  }
  // Compared as bytes: isDeepStrictEqual takes two invalid dates for different.
  const again = packValue(unpackValue(packed));
  must(Buffer.compare(again, packed) === 0, 'a value is kept');
}
