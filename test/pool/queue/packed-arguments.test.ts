/** Arguments that are packed when a function is scheduled, and how long the line may get by them. */

import { InvalidArgumentError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

const MEGABYTE = 2 ** 20;
const many = () => Array.from({ length: 100 }, (_, id) => ({ id, tags: ['a', 'b'] }));

const numbers = [
  0,
  -0,
  1,
  -1,
  0.1,
  NaN,
  -Infinity,
  2 ** 30,
  -(2 ** 30),
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
].flatMap((number) => [number, number, number]);
const strings = ['', 'a', 'ÿ', 'a€', '€', '😀', '\0', 'x'.repeat(1_000), '€'.repeat(1_000)].flatMap(
  (text) => [text, `${text}1`, `1${text}`, text],
);
const mixed = () => ({
  flags: [true, false, null, undefined],
  more: many(),
  map: new Map<unknown, unknown>([[1, new Set([/x/g, 10n])]]),
  date: new Date(0),
  bytes: new Uint8Array(3),
  error: new RangeError('so'),
});
const onceHoley = (): number[] => {
  const array: number[] = [];
  array.length = 100;
  return array.fill(-1);
};
const strangeKeys = (): object =>
  JSON.parse(`{"__proto__": 1, "toString": 2, "": 3, "more": ${JSON.stringify(many())}}`) as object;

/** Arrays whose properties say something else than what they are. */
class Short extends Uint8Array {
  override get byteLength(): number {
    return 2;
  }
}
class Moved extends Uint8Array {
  override get buffer(): ArrayBuffer {
    return new ArrayBuffer(64);
  }
}

describeKinds(kinds, (kind) => {
  const { start, running } = useClusters(kind);

  describe('an argument', () => {
    it('that was copied when it was scheduled is there for another attempt', async () => {
      const cluster = start();
      const objects = many();
      const bytes = new Float64Array(10_000).fill(0.5);
      const values = [
        await cluster.schedule('dieOnceWith', [objects]),
        await cluster.schedule('dieOnceWith', [bytes]),
      ];
      objects.length = 0;
      bytes.fill(0);
      expect(await cluster.fetch(values)).toEqual([many(), new Float64Array(10_000).fill(0.5)]);
    });

    it.each([
      [
        'a part of a typed array',
        new Int16Array([1, 2, 3, 4]).subarray(1, 3),
        new Int16Array([2, 3]),
      ],
      ['a Buffer', Buffer.from('abc'), new Uint8Array([97, 98, 99])],
      ['an ArrayBuffer', new Uint8Array([1, 2]).buffer, new Uint8Array([1, 2]).buffer],
      ['an array that says that it is shorter', Short.of(7, 8, 9), Uint8Array.of(7, 8, 9)],
      ['an array that says that it is elsewhere', Moved.of(7, 8, 9), Uint8Array.of(7, 8, 9)],
      ['an object that inherits from ArrayBuffer', Object.create(ArrayBuffer.prototype), {}],
      ['an empty array', new BigInt64Array(), new BigInt64Array()],
      [
        'a large part of a typed array',
        new Uint32Array(9_000).fill(7).subarray(1),
        new Uint32Array(8_999).fill(7),
      ],
      ['numbers', numbers, [...numbers]],
      ['an array that once had holes', onceHoley(), onceHoley()],
      ['strings', strings, [...strings]],
      ['objects of all kinds', mixed(), mixed()],
      ['an object with strange keys', strangeKeys(), strangeKeys()],
      ['an array with holes', Object.assign([], { 5_000: 1 }), Object.assign([], { 5_000: 1 })],
    ])('%s', async (_what, given, expected) => {
      const value = await start().schedule('echo', [given]);
      const got: unknown = await value.fetch();
      expect(got).toEqual(expected);
      // `toEqual` does not see a property named `__proto__`.
      expect(Object.keys(got as object)).toEqual(Object.keys(expected));
    });

    it('an object that is there twice, and one that holds itself', async () => {
      const twice = { many: many() };
      const value = await start().schedule('echo', [[twice, { twice }, ...many()]]);
      const [first, second] = (await value.fetch()) as [object, { twice: object }];
      expect(second.twice).toBe(first);
      const cycle: Record<string, unknown> = { many: many() };
      cycle['self'] = [cycle];
      const got = (await (await start().schedule('echo', [cycle])).fetch()) as typeof cycle;
      expect((got['self'] as unknown[])[0]).toBe(got);
    });

    it('that is deep, or all but empty, is no work', async () => {
      const cluster = start();
      const levels = kind.hasThreads ? 3_000 : 1_000; // a process reads on a smaller stack
      let deep: unknown = { last: true };
      for (let level = 1; level < levels; level++) deep = { value: deep };
      const sparse: number[] = [];
      sparse[3e8] = 1;
      expect(await (await cluster.schedule('depthOf', [deep])).fetch()).toBe(levels);
      expect(await (await cluster.schedule('lengthOf', [sparse as never])).fetch()).toBeUndefined();
    });

    it.each([
      ['small', {}],
      ['not small', { more: many() }],
    ])('that is %s: its getters are called once', async (_what, more) => {
      const cluster = start();
      let calls = 0;
      const given = {
        get count() {
          calls += 1;
          return calls;
        },
        ...more,
      };
      expect(await (await cluster.schedule('echo', [given])).fetch()).toMatchObject({ count: 1 });
      expect(calls).toBe(1);
    });

    it('no RemoteValue deep inside many objects', async () => {
      const cluster = start();
      const value = await cluster.schedule('add', [1, 2]);
      const error = await errorOf(cluster.schedule('echo', [[many(), new Map([[1, [value]]])]]));
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect(error.message).toMatch(/fetch\(\) it first/);
      await cluster.join();
    });
  });

  it('an object that a worker gives twice is two objects', async () => {
    const cluster = start();
    const values = await Promise.all(
      Array.from({ length: 20 }, () => cluster.schedule('keptObject')),
    );
    const results = await cluster.fetch(values);
    expect(results.map(({ calls }) => calls)).toEqual(results.map((_, index) => index + 1));
    expect(new Set(results.map(({ more }) => more)).size).toBe(20);
  });

  describe('maxQueuedBytes', () => {
    it('lets schedule wait, until there is room', async () => {
      const cluster = start(1, { maxQueuedBytes: 2.5 * MEGABYTE });
      const { visit } = await running(cluster, 'a');
      const given: [Uint8Array] = [new Uint8Array(MEGABYTE)];
      for (let count = 0; count < 2; count++) await cluster.schedule('lengthOf', given);
      expect(cluster.stats().queuedBytes).toBeGreaterThanOrEqual(2 * MEGABYTE);
      const waiting = cluster.schedule('lengthOf', given);
      expect(await isPending(waiting)).toBe(true);
      visit.pass();
      expect(await (await waiting).fetch()).toBe(MEGABYTE);
      await cluster.join();
      expect(cluster.stats().queuedBytes).toBe(0);
    });

    it('lets one in that is larger than the whole line may be', async () => {
      const cluster = start(1, { maxQueuedBytes: 1 });
      await running(cluster, 'a').then(({ visit }) => visit.pass());
      const value = await cluster.schedule('lengthOf', [new Uint8Array(MEGABYTE)]);
      expect(await value.fetch()).toBe(MEGABYTE);
    });

    it('has to be a number of bytes', () => {
      expect(() => start(1, { maxQueuedBytes: 0 })).toThrow(RangeError);
      expect(() => start(1, { maxQueuedBytes: '1' as never })).toThrow(TypeError);
    });
  });
});
