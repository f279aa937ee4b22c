/**
 * The identity of thrown values. An error keeps its id between threads and processes, so that
 * the thread that threw it gets the original object back, and an error or reason of a stop is
 * recognised as its echo when a task rejects with it.
 */

import { define, fieldOf, isObject } from '../base/thrown-value.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { AbortError } from '../errors/errors.ts';
import { binding } from '../native/native.ts';

/** A thrown value and its id. `known` finds the value by its id while a Carried of it is alive. */
export type Carried = {
  readonly id: string;
  readonly value: unknown;
  /** The id of the stop that this value is an echo of. */
  readonly echoOf?: string;
};

const byObject = new WeakMap<object, Carried>();
const byId = new WeakById<Carried>();
/** The stops whose echoes these objects are, which have no id before somebody asks for it. */
const stopOf = new WeakMap<object, string>();

/** From now on `known` finds the value by its id, while the caller keeps `carried` alive. */
export function remember(carried: Carried): Carried {
  if (isObject(carried.value)) byObject.set(carried.value, carried);
  byId.set(carried.id, carried);
  return carried;
}

/** The value with this id, if this thread has it. */
export function known(id: string): Carried | undefined {
  return byId.get(id);
}

/** The id of an object. @returns undefined if it has not been thrown before */
export function idOf(value: object): string | undefined {
  return carriedOf(value)?.id;
}

function carriedOf(value: object): Carried | undefined {
  const echoOf = stopOf.get(value);
  if (echoOf === undefined || byObject.has(value)) return byObject.get(value);
  return remember({ id: binding().nextIdentity(), value, echoOf });
}

/** The identity of a thrown value: an object keeps its id, a primitive gets a new one each time. */
export function carry(value: unknown): Carried {
  const carried = isObject(value) ? carriedOf(value) : undefined;
  return carried ?? remember({ id: binding().nextIdentity(), value });
}

/** A new AbortError that is an echo of the stop with this id. */
export function abortReason(message: string, stopId: string, cause?: unknown): AbortError {
  // Without a stack, which takes longer than all the rest: it would say how this thread has heard.
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', 0);
  const reason = new AbortError(message, cause === undefined ? undefined : { cause });
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  stopOf.set(reason, stopId);
  return reason;
}

/** From now on the object `value` is an echo of the stop `stopId`, unless it has an id already. */
export function markEcho(value: unknown, stopId: string): void {
  if (isObject(value) && !byObject.has(value) && !stopOf.has(value)) stopOf.set(value, stopId);
}

/** @returns `error`, with that cause, as an echo of the stop `stopId` */
export function asEcho(error: Error, stopId: string, cause: unknown): Error {
  define(error, 'cause', cause, false);
  markEcho(error, stopId);
  return error;
}

/** A getter may make a new cause at each look, without end. */
const MOST_CAUSES = 1_000;

/**
 * The stops that `value` may be an echo of. An AbortError stands for its chain of causes, too.
 *
 * `ids`: the ids of stops, and of errors that stops may have. `abortIds`: those of `ids` that
 * come from an AbortError or its causes. `bare`: the primitive values, which have no id.
 */
export function echoes(value: unknown): { ids: string[]; abortIds: string[]; bare: unknown[] } {
  const ids: string[] = [];
  const abortIds: string[] = [];
  const bare: unknown[] = [];
  const seen = new Set<unknown>();
  let wrapped = false;
  for (let current = value; !seen.has(current) && seen.size < MOST_CAUSES; ) {
    seen.add(current);
    if (!isObject(current)) {
      if (!(wrapped && current === undefined)) bare.push(current);
      break;
    }
    const carried = carriedOf(current);
    if (carried !== undefined) {
      ids.push(carried.id);
      if (wrapped) abortIds.push(carried.id);
      if (carried.echoOf !== undefined) {
        ids.push(carried.echoOf);
        abortIds.push(carried.echoOf);
      }
    }
    // Only an AbortError stands for its cause; further causes may be errors of any class.
    if (!wrapped && fieldOf(current, 'name') !== 'AbortError') break;
    wrapped = true;
    const outer = current;
    current = fieldOf(outer, 'cause');
  }
  return { ids, abortIds, bare };
}
