// The fields of an error keep every value that structuredClone() can copy, from any thread to any
// other. Random values (fast-check).

import { isDeepStrictEqual } from 'node:util';
import { Coordinator } from 'allstop';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OtherThread } from '../support/other-thread.ts';
import { runs, seed } from '../support/seed.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

const numRuns = runs(300);

const anything = fc.anything({
  maxDepth: 4,
  values: [
    fc.boolean(),
    fc.integer(),
    fc.double(),
    fc.string(),
    fc.constantFrom(null, undefined, Number.NaN),
    fc.date({ noInvalidDate: true }), // for isDeepStrictEqual() no invalid date equals another
  ],
  withBigInt: true,
  withBoxedValues: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
});

/** Values with references to one another: each `$ref` field is one of the other values. */
const graph = fc
  .tuple(fc.array(anything, { minLength: 1, maxLength: 4 }), fc.array(fc.nat(), { maxLength: 4 }))
  .map(([values, picks]) => {
    const all: unknown[] = [...values];
    for (const pick of picks) {
      const at = all[pick % all.length];
      all.push(pick % 2 === 0 ? { $ref: at, all } : new Map([[at, new Set([at, all])]]));
    }
    return all;
  });

it(`what another thread sees is what structuredClone() makes, with seed ${seed}`, {
  tags: 'property',
}, async () => {
  await fc.assert(
    fc.asyncProperty(graph, async (value) => {
      const coord = new Coordinator();
      coord.requestStop(Object.assign(new TypeError('the message'), { value, again: value }));
      const seen = await there.see(coord, (error) => [
        error.value,
        error.value === error.again,
        error.constructor.name,
      ]);
      await there.forget();
      expect(seen.slice(1)).toEqual([true, 'TypeError']);
      return isDeepStrictEqual(seen[0], structuredClone(value));
    }),
    { seed, numRuns },
  );
});

it(`what comes from another thread is, too, with seed ${seed}`, { tags: 'property' }, async () => {
  await fc.assert(
    fc.asyncProperty(graph, async (value) => {
      const coord = new Coordinator();
      const make = ({ argument }: { argument: unknown }): Error =>
        Object.assign(new RangeError('the message', { cause: argument }), { value: argument });
      await there.report(coord, make, value);
      await there.forget();
      const error = coord.stopRecord?.error as Error & { value: unknown };
      expect(error).toBeInstanceOf(RangeError);
      expect(error.cause === error.value).toBe(true);
      return isDeepStrictEqual(error.value, structuredClone(value));
    }),
    { seed, numRuns },
  );
});

it(`any value that is thrown, with seed ${seed}`, { tags: 'property' }, async () => {
  await fc.assert(
    fc.asyncProperty(anything, async (value) => {
      fc.pre(value !== undefined && value !== null);
      const coord = new Coordinator();
      coord.requestStop(value);
      if (!Object.is(coord.stopRecord?.error, value)) return false;
      const seen = await there.see(coord, (error) => error);
      await there.forget();
      return isDeepStrictEqual(seen, structuredClone(value));
    }),
    { seed, numRuns },
  );
});

it(`an error is an error with any message, name and code, with seed ${seed}`, {
  tags: 'property',
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.string({ unit: 'binary' }),
      async (message, name, code) => {
        const coord = new Coordinator();
        const error = Object.assign(new Error(message), { name, code });
        coord.requestStop(error);
        const seen = await there.see(coord, (copy) => [
          copy.message,
          copy.name,
          copy.code,
          copy.stack,
        ]);
        await there.forget();
        return isDeepStrictEqual(seen, [message, name, code, error.stack]);
      },
    ),
    { seed, numRuns },
  );
});
