/** Checks and copies the arguments of a call before it is queued. */

import type { TransferListItem } from 'node:worker_threads';
import { invalidType } from '../../base/arguments.ts';
import { isObject } from '../../base/thrown-value.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { copyWithVariables, Variable } from '../variables/variable.ts';
import { argumentError, dataCloneError } from '../worker/protocol.ts';
import { transferListOf } from '../worker/transfer.ts';
import type { Call, TakenArguments } from './closure.ts';
import { PerWorkerValues } from './per-worker.ts';
import { RemoteValue } from './remote-value.ts';

const NOTHING: readonly TransferListItem[] = [];

/**
 * Objects have to be copied. A symbol is passed to structuredClone, too, which refuses it: the
 * caller gets the error here, not the function on the worker.
 */
const hasToBeCopied = (value: unknown): boolean => isObject(value) || typeof value === 'symbol';

/**
 * Refuses values that structuredClone would silently turn into something else, also inside
 * arrays, Maps, Sets and objects.
 */
function refuse(value: unknown, sharesMemory: boolean, seen: Set<object>): void {
  if (!isObject(value) || seen.has(value)) return;
  seen.add(value);
  if (value instanceof Variable) return;
  if (value instanceof RemoteValue) {
    throw new InvalidArgumentError(
      'A RemoteValue cannot be an argument: fetch() it first, and pass its value',
    );
  }
  if (value instanceof PerWorkerValues) {
    throw new InvalidArgumentError(
      'PerWorkerValues can only be arguments themselves, not inside another value, and only in the cluster that made them',
    );
  }
  if (Array.isArray(value)) for (const each of value) refuse(each, sharesMemory, seen);
  else if (ArrayBuffer.isView(value)) refuse(value.buffer, sharesMemory, seen);
  else if (value instanceof SharedArrayBuffer) {
    if (sharesMemory) return;
    throw new InvalidArgumentError(
      'A SharedArrayBuffer cannot be an argument here: only worker threads share memory. Pass a copy',
    );
  } else if (value instanceof Map) {
    for (const [key, each] of value) {
      refuse(key, sharesMemory, seen);
      refuse(each, sharesMemory, seen);
    }
  } else if (value instanceof Set) for (const each of value) refuse(each, sharesMemory, seen);
  else for (const each of Object.values(value)) refuse(each, sharesMemory, seen);
}

/**
 * All calls are built here, with the properties in one order, so that V8 keeps one hidden class.
 */
const newCall = (
  name: string,
  args: readonly unknown[],
  perWorker: readonly number[] | undefined,
  hasVariables = false,
  moved: readonly TransferListItem[] = NOTHING,
  take?: () => TakenArguments,
): Call => ({ kind: 'call', name, args, perWorker, hasVariables, transfer: moved, take });

/**
 * Copies the arguments at once, so that the caller can change them afterwards, and an argument
 * that cannot be copied is refused at once. Arguments in which `transfer` marks objects as moved
 * stay the caller's until the call is queued (then `Call.take` takes them), because a call that
 * is refused must leave the caller its objects.
 *
 * @param name - the function's name, for error messages
 * @throws TypeError, InvalidArgumentError, DataCloneError
 */
export function makeCall(
  name: string,
  given: unknown,
  cluster: object,
  sharesMemory: boolean,
): Call {
  const values = given === undefined ? [] : given;
  if (!Array.isArray(values)) throw invalidType('args', 'an instance of Array', given);
  if (!values.some(hasToBeCopied)) {
    return newCall(name, [...values], undefined);
  }
  const perWorker: number[] = [];
  const args = values.map((value: unknown, index) => {
    const id = PerWorkerValues.idOf(value, cluster);
    if (id === undefined) return value;
    perWorker.push(index, id);
    return undefined;
  });
  const seen = new Set<object>();
  for (const value of args) refuse(value, sharesMemory, seen);
  const own = perWorker.length > 0 ? perWorker : undefined;
  const moved = transferListOf(args);
  if (moved.length === 0) {
    try {
      const [copy, hasVariables] = copyWithVariables(cluster, () => structuredClone(args));
      return newCall(name, copy, own, hasVariables);
    } catch (error) {
      throw argumentError(error, name, args, structuredClone);
    }
  }
  const take = (): TakenArguments => {
    try {
      // The clones of the moved objects, which `transfer` has to name when they go to a worker.
      const [taken, hasVariables] = copyWithVariables(cluster, () =>
        structuredClone({ args, transfer: moved }, { transfer: moved as never }),
      );
      return { ...taken, hasVariables };
    } catch (error) {
      throw dataCloneError(error); // the runtime throws another type for a detached buffer
    }
  };
  return newCall(name, args, own, false, moved, take);
}
