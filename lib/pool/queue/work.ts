/** Checks and copies the arguments of a call before it is queued. */

import { isSharedArrayBuffer, isTypedArray } from 'node:util/types';
import { invalidType, isSignal } from '../../base/arguments.ts';
import { hasSerializer } from '../../base/builtins.ts';
import { attempt } from '../../base/thrown-value.ts';
import { bufferOf } from '../../base/typed-arrays.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import {
  checkCloned,
  checkKept,
  cloneChecked,
  isDataCloneError,
  mayBeLost,
  NO_PER_WORKER_VALUES,
  NO_REMOTE_VALUE,
  whyUncloneable,
} from '../../values/lost-values.ts';
import {
  bytesOfPrimitive,
  checkAttached,
  copyFlat,
  type Movable,
  smallCopy,
  transferListOf,
} from '../../values/to-thread.ts';
import {
  type BareArray,
  bareArray,
  type PackedArguments,
  packArguments,
  packValue,
  SHARED_MEMORY,
} from '../../values/value.ts';
import { argumentError } from '../worker/messages.ts';
import type { TakenArguments, Work } from './call.ts';

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
  let moved: readonly Movable[] = NOTHING;
  try {
    moved = transferListOf(args);
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
    // To copy what can only be moved would name the wrong part.
    const search = moved.length > 0 ? checkCloned : cloneChecked;
    throw refused(error, name, args, copying, sharesMemory ? search : packValue);
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

// Copies the arguments of a call when it is scheduled, in the cheapest way that keeps the rules of
// structuredClone, but that a typed array which is an argument itself shares no memory with the
// other arguments. Each value is read once, by the copier itself: no other walk goes through it,
// which holes, depth or getters could make long.
//
// 1. Small plain arguments are copied as values (to-thread.ts); for threads, bare arrays beside small
//    primitive values, too.
// 2. All others are packed as bytes, which is half of the work of structuredClone. The worker does
//    the other half. The bytes are kept until the call has ended, for another attempt.
// 3. Shared memory, which is an argument itself, goes to a thread as it is.
// 4. Arguments that cannot be bytes, but can go to a thread (a SharedArrayBuffer in an object, a
//    MessagePort, objects of Node's own), are copied by structuredClone. It is also what says which
//    error the others are refused with.

/**
 * More are packed. A thread reads values before it begins their call, but bytes when it has begun:
 * a thread that reads for long would look as if it did not answer (live-worker.ts).
 */
const MOST_BYTES_AS_VALUES = 2 ** 20;

type CopiedArguments = {
  /** An ArrayBuffer: packed, for a thread. A Uint8Array: packed, for a process or node. */
  readonly args: readonly unknown[] | ArrayBuffer | Uint8Array;
  /** About how many bytes the copy takes; memory that is shared is not counted. */
  readonly bytes: number;
};

/**
 * @throws DataCloneError; InvalidArgumentError: a SharedArrayBuffer for a process or node; the
 *   error of a getter; RangeError: a value is nested too deeply
 */
function copyArguments(args: readonly unknown[], sharesMemory: boolean): CopiedArguments {
  const ofPrimitives = bytesOfSmall(args) ?? Number.POSITIVE_INFINITY;
  if (ofPrimitives <= MOST_BYTES_AS_VALUES) return { args: [...args], bytes: ofPrimitives };
  const small = smallCopy(args, refuseFields);
  if (small !== undefined && (small.bytes <= MOST_BYTES_AS_VALUES || !hasSerializer)) {
    return { args: small.values, bytes: small.bytes };
  }
  const shared = sharesMemory ? sharedAsTheyAre(args) : undefined;
  if (shared !== undefined) return shared;
  refuseSignals(args);
  const bare = bareArrays(args);
  if (sharesMemory && bare.length > 0) {
    const flat = flatCopy(args, bare);
    if (flat !== undefined) return flat;
  }
  const others = without(args, bare);
  const packed = tryToPack(others, bare, sharesMemory);
  if (packed === undefined) return { args: cloneChecked(args), bytes: 0 };
  const bytes = packed.byteLength;
  if (bare.length < args.length) {
    const head = packed.subarray(0, bytes - bytesOfBare(bare));
    if (!sharesMemory) checkKept(others, head);
    else if (mayBeLost(others, head)) return { args: cloneChecked(args, true), bytes };
  }
  return { args: sharesMemory ? packed.buffer : packed, bytes };
}

/** @returns undefined unless each is primitive and small */
function bytesOfSmall(values: readonly unknown[]): number | undefined {
  let bytes = 0;
  for (const value of values) {
    const own = bytesOfPrimitive(value);
    if (own === undefined || own > MOST_BYTES_AS_VALUES) return undefined;
    bytes += own;
  }
  return bytes;
}

/**
 * Serializers make an object without properties of an AbortSignal. Found as an argument, and as a
 * property of one, where options have it.
 *
 * @throws InvalidArgumentError
 */
function refuseSignals(args: readonly unknown[]): void {
  for (const [index, value] of args.entries()) {
    if (typeof value !== 'object' || value === null) continue;
    const signal = attempt(() => Object.getOwnPropertyDescriptor(value, 'signal'));
    const inside = isSignal(signal?.value);
    if (!inside && !isSignal(value)) continue;
    throw new InvalidArgumentError(
      `args[${index}]${inside ? '.signal' : ''} is an AbortSignal, which cannot be an argument: give it as an option of the call, { signal }. In the function currentCall().signal aborts`,
    );
  }
}

/**
 * No serializer copies the fields of an error, so that none finds a RemoteValue there.
 *
 * @throws InvalidArgumentError
 */
function refuseFields(error: Error): void {
  for (const key of Object.keys(error)) {
    const field: unknown = Object.getOwnPropertyDescriptor(error, key)?.value;
    if (typeof field !== 'object' || field === null || !('uncloneable' in field)) continue;
    const { uncloneable } = field;
    if (uncloneable === NO_REMOTE_VALUE || uncloneable === NO_PER_WORKER_VALUES) {
      throw new InvalidArgumentError((uncloneable as symbol).description);
    }
  }
}

/**
 * Checks arguments that are taken later, when the call is queued.
 *
 * @throws InvalidArgumentError, DataCloneError
 */
function checkMoved(args: readonly unknown[], sharesMemory: boolean): void {
  refuseSignals(args);
  if (sharesMemory || !hasSerializer) {
    checkCloned(args);
    return;
  }
  let packed: Uint8Array;
  try {
    packed = packArguments(args, []);
  } catch (error) {
    if (isShared(error)) throw noSharedMemory();
    return; // whether the others can be sent is known when they are taken
  }
  checkKept(args, packed);
}

/** @returns undefined: the values have to be copied by structuredClone */
function tryToPack(
  args: readonly unknown[],
  bare: readonly BareArray[],
  sharesMemory: boolean,
): PackedArguments | undefined {
  if (sharesMemory && !hasSerializer) return undefined;
  try {
    return packArguments(args, bare);
  } catch (error) {
    if (!sharesMemory && isShared(error)) throw noSharedMemory();
    if (!sharesMemory || !isDataCloneError(error) || whyUncloneable(error) !== undefined) {
      throw error;
    }
    return undefined;
  }
}

/** @returns undefined unless each argument is shared memory itself, or primitive and small */
function sharedAsTheyAre(args: readonly unknown[]): CopiedArguments | undefined {
  const bytes = bytesOfSmall(args.filter((value) => !isSharedMemory(value)));
  return bytes === undefined ? undefined : { args: [...args], bytes };
}

/** (What a property of a typed array says, and its prototype, anybody may have changed.) */
const isSharedMemory = (value: unknown): boolean =>
  isSharedArrayBuffer(value) || (isTypedArray(value) && isSharedArrayBuffer(bufferOf(value)));

/** The arguments that are bare arrays, of an ArrayBuffer each: two of one would share it. */
function bareArrays(args: readonly unknown[]): BareArray[] {
  if (!hasSerializer) return [];
  const found: BareArray[] = [];
  for (const [index, value] of args.entries()) {
    const bare = typeof value === 'object' && value !== null ? bareArray(value, index) : undefined;
    if (bare !== undefined) found.push(bare);
  }
  const buffers = new Set(found.map(({ bytes }) => bytes.buffer));
  return buffers.size === found.length ? found : [];
}

/** @returns undefined unless the arguments that are no bare arrays are all primitive and small */
function flatCopy(
  args: readonly unknown[],
  bare: readonly BareArray[],
): CopiedArguments | undefined {
  const values = without(args, bare);
  const bytes = bytesOfSmall(values);
  if (bytes === undefined) return undefined;
  return { args: copyFlat(values, bare), bytes: bytes + bytesOfBare(bare) };
}

/** The arguments, `undefined` in place of each bare array. */
function without(args: readonly unknown[], bare: readonly BareArray[]): unknown[] {
  const values = [...args];
  for (const { index } of bare) values[index] = undefined;
  return values;
}

const bytesOfBare = (bare: readonly BareArray[]): number =>
  bare.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);

const isShared = (error: unknown): boolean =>
  isDataCloneError(error) && error.message === SHARED_MEMORY;

const noSharedMemory = (): Error =>
  new InvalidArgumentError(
    'A SharedArrayBuffer cannot be an argument here: only worker threads share memory. Pass a copy',
  );
