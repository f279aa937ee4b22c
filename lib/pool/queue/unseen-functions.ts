/**
 * The errors of scheduled functions that the program has not been given: no `fetch` had them, no
 * `schedule`, `join` or `done` threw them. They are written when the process ends.
 */

import { fieldOf } from '../../base/thrown-value.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';

/** Values that are no objects have no identity of their own: each is noted once, by its value. */
const ids = new Map<unknown, string>();

/** As many as the core keeps. */
const MAX_NOTED = 1024;

/** A function has failed, and no `fetch` waits for its result. */
export function noteFailure(error: unknown): void {
  if (ids.has(error)) return;
  const { carried, bytes } = encode(error);
  ids.set(error, carried.id);
  binding().noteUnseen(bytes, 'a scheduled function');
  for (const oldest of ids.keys()) {
    if (ids.size <= MAX_NOTED) break;
    ids.delete(oldest);
  }
}

/** The program is given `error`, and with it the errors that are its causes. */
export function giveFailure(error: unknown): void {
  const seen = new Set<unknown>();
  for (let each = error; ids.size > 0 && !seen.has(each); ) {
    seen.add(each);
    const id = ids.get(each);
    if (id !== undefined) {
      ids.delete(each);
      binding().giveError(id);
    }
    each = fieldOf(each, 'cause');
    if (each === undefined) return; // no cause; `error` itself may be undefined, when thrown so
  }
}
