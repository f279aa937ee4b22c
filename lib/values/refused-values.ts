/** The errors for values that a serializer refuses: they name the part for which it does. */

import { attempt, fieldOf, isObject } from '../base/thrown-value.ts';
import { partsOf } from './walk.ts';

export type Part = {
  /** How a program would write it: `item.list[2].fn`. */
  readonly path: string;
  readonly value: unknown;
};

/** The search ends here, with the innermost refused part that it knows. */
const MOST_PARTS = 10_000;
const MOST_LEVELS = 64;

/** Whether a serializer has refused a value; another error is one of a getter, or a RangeError. */
export function isDataCloneError(error: unknown): error is DOMException {
  return isObject(error) && fieldOf(error, 'name') === 'DataCloneError';
}

/**
 * Makes the error for a value that `clone` refuses, with the place of the part that it refuses. An
 * `error` of another kind (of a getter; RangeError) is returned as it is.
 *
 * @param what - begins the message: "The result"
 * @param whole - the value, with its name in the message
 */
export function refusedValue(
  error: unknown,
  what: string,
  whole: Part,
  clone: (value: unknown) => unknown,
): unknown {
  if (!isDataCloneError(error)) return error;
  const part = refusedPart(whole, clone);
  const why =
    typeof part.value === 'function'
      ? `${part.path} is a function`
      : `${part.path}: ${error.message}`;
  return new DOMException(`${what} cannot be cloned: ${why}`, 'DataCloneError');
}

/**
 * @param clone - throws for the value of `whole`
 * @returns the innermost part that `clone` refuses; `whole` if that is the value itself
 */
export function refusedPart(whole: Part, clone: (value: unknown) => unknown): Part {
  /** Refused objects. A part that contains one of them may be refused for that one. */
  const met = new Set<unknown>();
  let left = MOST_PARTS;
  const isRefused = (value: unknown): boolean => {
    if (typeof value !== 'symbol' && !isObject(value)) return false;
    left -= 1;
    try {
      clone(value);
      return false;
    } catch {
      return true;
    }
  };
  const innermost = (refused: Part, level: number): Part | undefined => {
    met.add(refused.value);
    let isWhole = true;
    for (const part of level < MOST_LEVELS ? partsIn(refused) : []) {
      if (left === 0) break;
      if (!met.has(part.value)) {
        if (!isRefused(part.value)) continue;
        const found = innermost(part, level + 1);
        if (found !== undefined) return found;
      }
      isWhole = false;
    }
    return isWhole ? refused : undefined;
  };
  return innermost(whole, 0) ?? whole;
}

/** The parts of an object. One whose getter throws is undefined here, which is never refused. */
function* partsIn({ path, value }: Part): Generator<Part> {
  if (typeof value !== 'object' || value === null) return;
  for (const { value: part, as, at } of partsOf(value, propertyOf)) {
    if (as === 'property') yield { path: path + accessTo(String(at)), value: part };
    else {
      const inEntry = { key: '[0]', value: '[1]', item: '' }[as];
      yield { path: `[...${path}][${at}]${inEntry}`, value: part };
    }
  }
}

const propertyOf = (value: object, key: string): unknown =>
  attempt(() => ({ value: Reflect.get(value, key) }))?.value;

function accessTo(key: string): string {
  if (/^\d+$/.test(key)) return `[${key}]`;
  // Not a literal: V8 makes the sets of letters when it first reads the source, in each thread.
  return new RegExp(String.raw`^[\p{ID_Start}$_][\p{ID_Continue}$]*$`, 'u').test(key)
    ? `.${key}`
    : `[${JSON.stringify(key)}]`;
}

// Objects that no serializer takes. structuredClone copies the enumerable properties of an object,
// and not the private fields of its class: a RemoteValue among other values would arrive as `{}`.
// So such an object has a property that cannot be cloned; the serializer itself finds it,
// wherever the object is, and no walk of ours through all values is needed.

/** Values for a property named `uncloneable`: the description of each is the error's message. */
export const NO_REMOTE_VALUE: symbol = Symbol(
  'A RemoteValue can only be an argument itself, of a function, not inside another value: fetch() it first, and pass its value',
);
export const NO_PER_WORKER_VALUES: symbol = Symbol(
  'PerWorkerValues can only be arguments themselves, not inside another value, and only in the cluster that made them',
);

/** The message for an object whose `uncloneable` made a serializer throw `error`; else undefined. */
export function whyUncloneable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const found = [NO_REMOTE_VALUE, NO_PER_WORKER_VALUES].find((each) =>
    error.message.includes(String(each)),
  );
  return found?.description;
}
