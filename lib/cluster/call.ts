/** The arguments of a closure, as they go to a worker. */

import type { TransferListItem } from 'node:worker_threads';
import { invalidType } from '../arguments.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { Call } from './closure.ts';
import { PerWorkerValues } from './per-worker.ts';
import { RemoteValue } from './remote-value.ts';
import { transferListOf } from './transfer.ts';

const NOTHING: readonly TransferListItem[] = [];

/** What `structuredClone` has to look at: a symbol it refuses. */
const needsCopy = (value: unknown): boolean => isObject(value) || typeof value === 'symbol';

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** What would arrive as an empty object. */
function refuseHandles(value: unknown, seen: Set<object>): void {
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
  if (Array.isArray(value)) for (const each of value) refuseHandles(each, seen);
  else if (value instanceof Map) {
    for (const [key, each] of value) {
      refuseHandles(key, seen);
      refuseHandles(each, seen);
    }
  } else if (value instanceof Set) for (const each of value) refuseHandles(each, seen);
  else if (Object.getPrototypeOf(value) === Object.prototype) {
    for (const each of Object.values(value)) refuseHandles(each, seen);
  }
}

/**
 * The arguments are copied here and now: what the caller does to them later is nobody's
 * concern, and what cannot be copied is refused at once.
 *
 * @throws TypeError, InvalidArgumentError, DataCloneError
 */
export function makeCall(name: string, given: unknown, cluster: object): Call {
  const values = given === undefined ? [] : given;
  if (!Array.isArray(values)) throw invalidType('args', 'an instance of Array', given);
  if (!values.some(needsCopy)) {
    return { kind: 'call', name, args: [...values], perWorker: undefined, transfer: NOTHING };
  }
  const perWorker: number[] = [];
  const own = values.map((value: unknown, index) => {
    const id = PerWorkerValues.idOf(value, cluster);
    if (id === undefined) return value;
    perWorker.push(index, id);
    return undefined;
  });
  const seen = new Set<object>();
  for (const value of own) refuseHandles(value, seen);
  const moved = transferListOf(own);
  // What is moved is ours then, under another identity.
  const copy = structuredClone({ args: own, transfer: moved }, { transfer: moved as never });
  return {
    kind: 'call',
    name,
    args: copy.args,
    perWorker: perWorker.length > 0 ? perWorker : undefined,
    transfer: copy.transfer,
  };
}
