/** Checks and copies the arguments of a call before it is queued. */

import { invalidType } from '../../base/arguments.ts';
import { copyWithVariables } from '../../cluster/variables/variable.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { whyUncloneable } from '../../values/uncloneable.ts';
import { packValue } from '../../values/value.ts';
import { argumentError } from '../worker/protocol.ts';
import { checkAttached, type Movable, transfer, transferListOf } from '../worker/transfer.ts';
import type { Call, TakenArguments } from './closure.ts';
import { checkMoved, copyArguments } from './copy-arguments.ts';
import { PerWorkerValues } from './per-worker.ts';
import { RemoteValue } from './remote-value.ts';

const NOTHING: readonly Movable[] = [];

/** What the caller has passed as `args`. @throws TypeError: it is no array */
export function argumentsOf(args: unknown): readonly unknown[] {
  if (args === undefined) return [];
  if (Array.isArray(args)) return args;
  throw invalidType('args', 'an instance of Array', args, 'write the arguments as one array');
}

/**
 * A call that waits for RemoteValues among its arguments. The others are copied, or taken, as by
 * `makeCall`, which makes the call that is sent, when all values are there.
 *
 * @throws TypeError, InvalidArgumentError, DataCloneError: the arguments that are no RemoteValues
 */
export function makeHeldCall(
  name: string,
  passed: readonly unknown[],
  cluster: object,
  sharesMemory: boolean,
): Call {
  const given = [...passed]; // the caller may change its array while the call is held
  const others = given.map((value) => (value instanceof RemoteValue ? undefined : value));
  makeCall(name, others, cluster, sharesMemory);
  const stays = (value: unknown): boolean =>
    value instanceof RemoteValue || PerWorkerValues.idOf(value, cluster) !== undefined;
  const values = given.map((value) => (stays(value) ? undefined : value));
  const lists = given.map((value) => transferListOf([value]));
  const moved = lists.flat();
  const copied = (): TakenArguments => {
    checkAttached(moved);
    const [copy, hasVariables] = copyWithVariables(cluster, () =>
      structuredClone({ values, lists }, { transfer: moved as never }),
    );
    const args = given.map((value, index) => {
      if (stays(value)) return value;
      const own = copy.values[index];
      const list = copy.lists[index] as Movable[];
      return list.length === 0 ? own : transfer(own as object, list);
    });
    return { args, transfer: NOTHING, hasVariables };
  };
  if (moved.length > 0) {
    return newCall(name, given, bytesOf(moved), undefined, false, NOTHING, copied);
  }
  const { args, hasVariables } = copied();
  return newCall(name, args, 0, undefined, hasVariables);
}

/**
 * All calls are built here, with the properties in one order, so that V8 keeps one hidden class.
 */
const newCall = (
  name: string,
  args: Call['args'],
  bytes: number,
  perWorker: readonly number[] | undefined,
  hasVariables = false,
  moved: readonly Movable[] = NOTHING,
  take?: () => TakenArguments,
  holds?: readonly unknown[],
): Call => ({
  name,
  args,
  bytes,
  perWorker,
  holds,
  hasVariables,
  transfer: moved,
  take,
});

/**
 * @param copy - refuses what has refused the arguments
 * @returns `error`, in words for the caller: InvalidArgumentError, DataCloneError
 */
function refused(
  error: unknown,
  name: string,
  args: readonly unknown[],
  cluster: object,
  copy: (value: unknown) => unknown,
): unknown {
  const why = whyUncloneable(error);
  const clone = (value: unknown): unknown => copyWithVariables(cluster, () => copy(value));
  return why === undefined
    ? argumentError(error, name, args, clone)
    : new InvalidArgumentError(why);
}

/**
 * Copies the arguments at once, so that the caller can change them afterwards, and an argument
 * that cannot be copied is refused at once. Arguments in which `transfer` marks objects as moved
 * stay the caller's until the call is queued (then `Call.take` takes them), because a call that
 * is refused must leave the caller its objects.
 *
 * @param name - the function's name, for error messages
 * @throws InvalidArgumentError, DataCloneError
 */
export function makeCall(
  name: string,
  values: readonly unknown[],
  cluster: object,
  sharesMemory: boolean,
): Call {
  const perWorker: number[] = [];
  const args = values.map((value: unknown, index) => {
    const id = PerWorkerValues.idOf(value, cluster);
    if (id === undefined) return value;
    perWorker.push(index, id);
    return undefined;
  });
  const own = perWorker.length > 0 ? perWorker : undefined;
  const holds = own && values.filter((value) => PerWorkerValues.idOf(value, cluster) !== undefined);
  try {
    const moved = transferListOf(args);
    if (moved.length === 0) {
      const [copy, hasVariables] = copyWithVariables(cluster, () =>
        copyArguments(args, sharesMemory),
      );
      const { args: packed, bytes } = copy;
      return newCall(name, packed, bytes, own, hasVariables, NOTHING, undefined, holds);
    }
    checkMoved(args, sharesMemory);
    const take = (): TakenArguments => taken(name, args, moved, cluster);
    return newCall(name, args, bytesOf(moved), own, false, moved, take, holds);
  } catch (error) {
    throw refused(error, name, args, cluster, sharesMemory ? structuredClone : packValue);
  }
}

const bytesOf = (moved: readonly Movable[]): number =>
  moved.reduce((sum, each) => sum + (each instanceof ArrayBuffer ? each.byteLength : 0), 0);

function taken(
  name: string,
  args: readonly unknown[],
  moved: readonly Movable[],
  cluster: object,
): TakenArguments {
  try {
    checkAttached(moved);
    // The clones of the moved objects, which `transfer` has to name when they go to a worker.
    const [own, hasVariables] = copyWithVariables(cluster, () =>
      structuredClone({ args, transfer: moved }, { transfer: moved as never }),
    );
    return { ...own, hasVariables };
  } catch (error) {
    // The search for the refused part copies values: of what can be moved only buffers can be copied.
    if (moved.every((each) => each instanceof ArrayBuffer))
      throw refused(error, name, args, cluster, structuredClone);
    const why = whyUncloneable(error);
    throw why === undefined ? error : new InvalidArgumentError(why);
  }
}
