/**
 * Which parameter servers keep a variable. Its name says which one; a large variable is on several,
 * and each has a range of its elements.
 */

import { createHash } from 'node:crypto';
import {
  byteLengthOf,
  type Definition,
  elementsOf,
  emptyArray,
  isArrayFor,
  shapeOf,
  type VariableValue,
} from '../../cluster/variables/variable.ts';
import { UnavailableError } from '../../errors/errors.ts';

/**
 * A variable that is longer is on as many servers as it has pieces of this length, if there are so
 * many: what a server of NATS takes in one message by default, and a session has on its way.
 */
const RANGE_BYTES = 1024 * 1024;

/** Some of a variable's elements, or all. */
export type Range = {
  /** Its name is that by which the server knows the range. */
  readonly definition: Definition;
  /** The index of its first element in the variable. */
  readonly begin: number;
};

/**
 * The indexes of the servers for a variable: the same ones in each program with as many servers.
 * None if `places`, the indexes of all, has none.
 */
export function placesOf(definition: Definition, places: readonly number[] = []): number[] {
  const pieces = Math.ceil(byteLengthOf(definition) / RANGE_BYTES);
  const count = Math.min(places.length, Math.max(1, pieces));
  const first = createHash('sha256').update(definition.name).digest().readUInt32LE(0);
  return Array.from({ length: count }, (_, at) => places[(first + at) % places.length] as number);
}

/** @param keys - for each range, the name by which its server knows it */
export function rangesOf({ type, length }: Definition, keys: readonly string[]): Range[] {
  const start = (at: number): number => Math.floor((at * length) / keys.length);
  return keys.map((name, at) => {
    const begin = start(at);
    return { definition: { name, type, length: start(at + 1) - begin }, begin };
  });
}

/** The value of each range, without a copy. */
export function split(value: VariableValue, ranges: readonly Range[]): VariableValue[] {
  if (ranges.length === 1 || typeof value === 'number') return [value];
  return ranges.map(({ definition, begin }) => elementsOf(definition, value, begin));
}

/**
 * The variable's value, in memory of its own: the array that a message holds is a view of the
 * message, or of memory of other buffers.
 *
 * @throws UnavailableError: `values`, the servers' answers, are not those of the ranges
 */
export function joined(
  definition: Definition,
  ranges: readonly Range[],
  values: readonly unknown[],
): VariableValue {
  const wrong = (): UnavailableError =>
    new UnavailableError(
      `The parameter server of the variable '${definition.name}' has answered with what is not ${shapeOf(definition)}`,
    );
  if (definition.type === 0) {
    if (typeof values[0] !== 'number') throw wrong();
    return values[0];
  }
  const all = emptyArray(definition);
  for (const [at, { definition: own, begin }] of ranges.entries()) {
    const value = values[at];
    if (!isArrayFor(own, value)) throw wrong();
    all.set(value, begin);
  }
  return all;
}
