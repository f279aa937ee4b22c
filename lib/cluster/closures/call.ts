/** Checks and copies the arguments of a call before it is queued. */

import type { TransferListItem } from 'node:worker_threads';
import { invalidType } from '../../base/arguments.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { argumentError, dataCloneError } from '../worker/protocol.ts';
import { transferListOf } from '../worker/transfer.ts';
import { whyUncloneable } from '../worker/uncloneable.ts';
import type { Call, TakenArguments } from './closure.ts';
import { checkMoved, copyArguments } from './copy-arguments.ts';
import { PerWorkerValues } from './per-worker.ts';

const NOTHING: readonly TransferListItem[] = [];

/**
 * All calls are built here, with the properties in one order, so that V8 keeps one hidden class.
 */
const newCall = (
  name: string,
  args: Call['args'],
  bytes: number,
  perWorker: readonly number[] | undefined,
  moved: readonly TransferListItem[] = NOTHING,
  take?: () => TakenArguments,
): Call => ({ kind: 'call', name, args, bytes, perWorker, transfer: moved, take });

/** @throws InvalidArgumentError, DataCloneError: `error`, in words for the caller */
function refused(error: unknown, name: string, args: readonly unknown[]): unknown {
  const why = whyUncloneable(error);
  return why === undefined
    ? argumentError(error, name, args, structuredClone)
    : new InvalidArgumentError(why);
}

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
  const perWorker: number[] = [];
  const args = values.map((value: unknown, index) => {
    const id = PerWorkerValues.idOf(value, cluster);
    if (id === undefined) return value;
    perWorker.push(index, id);
    return undefined;
  });
  const own = perWorker.length > 0 ? perWorker : undefined;
  const moved = transferListOf(args);
  try {
    if (moved.length === 0) {
      const copy = copyArguments(args, sharesMemory);
      return newCall(name, copy.args, copy.bytes, own);
    }
    checkMoved(args, sharesMemory);
    return newCall(name, args, bytesOf(moved), own, moved, () => taken(args, moved));
  } catch (error) {
    throw refused(error, name, args);
  }
}

const bytesOf = (moved: readonly TransferListItem[]): number =>
  moved.reduce((sum, each) => sum + (each instanceof ArrayBuffer ? each.byteLength : 0), 0);

function taken(args: readonly unknown[], moved: readonly TransferListItem[]): TakenArguments {
  try {
    // The clones of the moved objects, which `transfer` has to name when they go to a worker.
    return structuredClone({ args, transfer: moved }, { transfer: moved as never });
  } catch (error) {
    const why = whyUncloneable(error);
    if (why !== undefined) throw new InvalidArgumentError(why);
    throw dataCloneError(error); // the runtime throws another type for a detached buffer
  }
}
