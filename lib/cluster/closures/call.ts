/** The arguments of a closure, as they go to a worker. */

import type { TransferListItem } from 'node:worker_threads';
import { invalidType } from '../../base/arguments.ts';
import { isObject } from '../../base/thrown-value.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { dataCloneError } from '../worker/protocol.ts';
import { transferListOf } from '../worker/transfer.ts';
import type { Call, Taken } from './closure.ts';
import { PerWorkerValues } from './per-worker.ts';
import { RemoteValue } from './remote-value.ts';

const NOTHING: readonly TransferListItem[] = [];

/** A symbol cannot be copied, either; anything else is itself. */
const hasToBeCopied = (value: unknown): boolean => isObject(value) || typeof value === 'symbol';

/** Refuses what would arrive as something else. Looks into whatever is copied field by field. */
function refuse(value: unknown, sharesMemory: boolean, seen: Set<object>): void {
  if (!isObject(value) || seen.has(value)) return;
  seen.add(value);
  if (value instanceof RemoteValue) {
    throw new InvalidArgumentError(
      'A RemoteValue cannot be an argument: fetch it first, or pass what it was made of',
    );
  }
  if (value instanceof PerWorkerValues) {
    throw new InvalidArgumentError(
      'PerWorkerValues have to be arguments themselves, of a function of their own cluster',
    );
  }
  if (Array.isArray(value)) for (const each of value) refuse(each, sharesMemory, seen);
  else if (ArrayBuffer.isView(value)) refuse(value.buffer, sharesMemory, seen);
  else if (value instanceof SharedArrayBuffer) {
    if (sharesMemory) return;
    throw new InvalidArgumentError(
      'Shared memory cannot be an argument here: it is shared with threads only. Pass a copy',
    );
  } else if (value instanceof Map) {
    for (const [key, each] of value) {
      refuse(key, sharesMemory, seen);
      refuse(each, sharesMemory, seen);
    }
  } else if (value instanceof Set) for (const each of value) refuse(each, sharesMemory, seen);
  else for (const each of Object.values(value)) refuse(each, sharesMemory, seen);
}

/** All of one shape: they are read often. */
const called = (
  name: string,
  args: readonly unknown[],
  perWorker: readonly number[] | undefined,
  moved: readonly TransferListItem[] = NOTHING,
  take?: () => Taken,
): Call => ({ kind: 'call', name, args, perWorker, transfer: moved, take });

/**
 * The arguments are copied here and now: what the caller does to them later is nobody's
 * concern, and what cannot be copied is refused at once. Those of which something is moved
 * are the caller's until the call is in line: a call that is refused must not take them.
 *
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
    return called(name, [...values], undefined);
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
  if (moved.length === 0) return called(name, structuredClone(args), own);
  const take = (): Taken => {
    try {
      // What is moved is ours then, under another identity.
      return structuredClone({ args, transfer: moved }, { transfer: moved as never });
    } catch (error) {
      throw dataCloneError(error); // what had been moved before is told of in other words
    }
  };
  return called(name, args, own, moved, take);
}
