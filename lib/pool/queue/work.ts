/** Checks and copies the arguments of a call before it is queued. */

import { invalidType } from '../../base/arguments.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { whyUncloneable } from '../../values/refused-values.ts';
import { packValue } from '../../values/value.ts';
import { argumentError } from '../worker/protocol.ts';
import { checkAttached, type Movable, transferListOf } from '../worker/transfer.ts';
import type { TakenArguments, Work } from './call.ts';
import { checkMoved, copyArguments } from './copy-arguments.ts';

const NOTHING: readonly Movable[] = [];

/** Arguments that are more than their values: of a cluster, Variables and PerWorkerValues. */
export interface SpecialArguments {
  /** The ids of the arguments that each worker puts in, by their indexes; undefined: there are none. */
  perWorkerOf(values: readonly unknown[]): ReadonlyMap<number, number> | undefined;
  /** @returns the result of `copy`, and whether the worker has to revive what is in it */
  copying<T>(copy: () => T): [copied: T, hasVariables: boolean];
}

const plain = <T>(copy: () => T): [T, boolean] => [copy(), false];

/** What the caller has passed as `args`. @throws TypeError: it is no array */
export function argumentsOf(args: unknown): readonly unknown[] {
  if (args === undefined) return [];
  if (Array.isArray(args)) return args;
  throw invalidType('args', 'an instance of Array', args, 'write the arguments as one array');
}

/**
 * All calls are built here, with the properties in one order, so that V8 keeps one hidden class.
 */
export const newWork = (
  name: string,
  args: Work['args'],
  bytes: number,
  perWorker: readonly number[] | undefined,
  hasVariables = false,
  moved: readonly Movable[] = NOTHING,
  take?: () => TakenArguments,
  holds?: readonly unknown[],
): Work => ({
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
  copying: SpecialArguments['copying'],
  copy: (value: unknown) => unknown,
): unknown {
  const why = whyUncloneable(error);
  const clone = (value: unknown): unknown => copying(() => copy(value));
  return why === undefined
    ? argumentError(error, name, args, clone)
    : new InvalidArgumentError(why);
}

/**
 * Copies the arguments at once, so that the caller can change them afterwards, and an argument
 * that cannot be copied is refused at once. Arguments in which `transfer` marks objects as moved
 * stay the caller's until the call is queued (then `Work.take` takes them), because a call that
 * is refused must leave the caller its objects.
 *
 * @param name - the function's name, for error messages
 * @throws InvalidArgumentError, DataCloneError
 */
export function makeWork(
  name: string,
  values: readonly unknown[],
  sharesMemory: boolean,
  special?: SpecialArguments,
): Work {
  const copying = special === undefined ? plain : special.copying;
  const own = special?.perWorkerOf(values);
  const args =
    own === undefined ? values : values.map((each, at) => (own.has(at) ? undefined : each));
  const perWorker = own && [...own].flat();
  const holds = own && values.filter((_, at) => own.has(at));
  try {
    const moved = transferListOf(args);
    if (moved.length === 0) {
      if (special === undefined) {
        const { args: packed, bytes } = copyArguments(args, sharesMemory);
        return newWork(name, packed, bytes, undefined);
      }
      const [copy, hasVariables] = copying(() => copyArguments(args, sharesMemory));
      const { args: packed, bytes } = copy;
      return newWork(name, packed, bytes, perWorker, hasVariables, NOTHING, undefined, holds);
    }
    checkMoved(args, sharesMemory);
    const kept = [...args]; // the caller may change its array until they are taken
    const take = (): TakenArguments => taken(name, kept, moved, copying);
    return newWork(name, kept, bytesOf(moved), perWorker, false, moved, take, holds);
  } catch (error) {
    throw refused(error, name, args, copying, sharesMemory ? structuredClone : packValue);
  }
}

export const bytesOf = (moved: readonly Movable[]): number =>
  moved.reduce((sum, each) => sum + (each instanceof ArrayBuffer ? each.byteLength : 0), 0);

function taken(
  name: string,
  args: readonly unknown[],
  moved: readonly Movable[],
  copying: SpecialArguments['copying'],
): TakenArguments {
  try {
    checkAttached(moved);
    // The clones of the moved objects, which `transfer` has to name when they go to a worker.
    const [own, hasVariables] = copying(() =>
      structuredClone({ args, transfer: moved }, { transfer: moved as never }),
    );
    return { ...own, hasVariables };
  } catch (error) {
    // The search for the refused part copies values: of what can be moved only buffers can be copied.
    if (moved.every((each) => each instanceof ArrayBuffer))
      throw refused(error, name, args, copying, structuredClone);
    const why = whyUncloneable(error);
    throw why === undefined ? error : new InvalidArgumentError(why);
  }
}
