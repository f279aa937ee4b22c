/**
 * The identity of thrown values. An error keeps its id wherever it goes, so that the
 * thread that knows the original gets the original back, and a stop that comes back
 * as an error is known as an echo.
 */

import { attempt, isObject } from '../base/thrown-value.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { AbortError } from '../errors/errors.ts';
import { binding } from '../native/native.ts';

/** A thrown value and its identity. Hold it as long as the value should be found by id. */
export type Carried = {
  readonly id: string;
  readonly value: unknown;
  /** The id of the stop whose abort reason this is. */
  readonly echoOf?: string;
};

const byObject = new WeakMap<object, Carried>();
const byId = new WeakById<Carried>();

/** From now on the value is found by its id, as long as `carried` is held. */
export function remember(carried: Carried): Carried {
  if (isObject(carried.value)) byObject.set(carried.value, carried);
  byId.set(carried.id, carried);
  return carried;
}

/** What this thread knows by that id. */
export function known(id: string): Carried | undefined {
  return byId.get(id);
}

/** The id of an object that has been thrown before. */
export function idOf(value: object): string | undefined {
  return byObject.get(value)?.id;
}

/** The identity of a thrown value: objects keep theirs, primitives get a new one each time. */
export function carry(value: unknown): Carried {
  const carried = isObject(value) ? byObject.get(value) : undefined;
  return carried ?? remember({ id: binding().nextIdentity(), value });
}

/** A new AbortError, which is known as the echo of the stop with this id. */
export function abortReason(message: string, stopId: string, cause?: unknown): AbortError {
  const reason = new AbortError(message, cause === undefined ? undefined : { cause });
  remember({ id: binding().nextIdentity(), value: reason, echoOf: stopId });
  return reason;
}

/** From now on `value`, if it has an identity, is known as the echo of that stop. */
export function markEcho(value: unknown, stopId: string): void {
  if (!isObject(value) || byObject.has(value)) return;
  remember({ id: binding().nextIdentity(), value, echoOf: stopId });
}

/**
 * The ids of stops that `value` may be the echo of, and the values without
 * identity (primitives) that it stands for. An AbortError stands for its causes.
 */
export function echoes(value: unknown): { ids: string[]; abortIds: string[]; bare: unknown[] } {
  const ids: string[] = [];
  const abortIds: string[] = [];
  const bare: unknown[] = [];
  const seen = new Set<unknown>();
  let wrapped = false;
  for (let current = value; !seen.has(current); ) {
    seen.add(current);
    if (!isObject(current)) {
      if (!(wrapped && current === undefined)) bare.push(current);
      break;
    }
    const carried = byObject.get(current);
    if (carried !== undefined) {
      ids.push(carried.id);
      if (wrapped) abortIds.push(carried.id);
      if (carried.echoOf !== undefined) {
        ids.push(carried.echoOf);
        abortIds.push(carried.echoOf);
      }
    }
    // Only an AbortError passes the blame on; deeper causes may be anything.
    if (!wrapped && attempt(() => (current as Error).name) !== 'AbortError') break;
    wrapped = true;
    const outer = current;
    current = attempt(() => (outer as Error).cause);
  }
  return { ids, abortIds, bare };
}
