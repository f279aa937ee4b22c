// Items come out of a queue as they went in: with the codec 'structured' as structuredClone would
// copy them, with 'bytes' as a copy.

import { execFileSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { BoundedQueue } from 'allstop';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostile, revoked, throwing } from '../../support/odd-values.ts';
import { runs, seed } from '../../support/seed.ts';

const REFUSED = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };

function values(capacity = 8): BoundedQueue {
  return new BoundedQueue({ capacity });
}

function thrown(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The item as each of the methods to dequeue returns it. */
async function received(item: unknown): Promise<unknown[]> {
  const queue = values();
  for (let i = 0; i < 4; ++i) queue.enqueueSync(item);
  const [sync, async] = [queue.dequeueSync(), await queue.dequeue()];
  return [sync, async, ...(await queue.dequeueMany(2))];
}

/** Describes what isDeepStrictEqual ignores: the order of keys, and which objects are identical. */
function shape(value: unknown, seen = new Map<unknown, number>()): unknown {
  if (typeof value !== 'object' || value === null)
    return Object.is(value, -0) ? '-0' : typeof value;
  const known = seen.get(value);
  if (known !== undefined) return `#${known}`;
  seen.set(value, seen.size);
  const inside = value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : [];
  return [
    Object.prototype.toString.call(value),
    Array.isArray(value) ? value.length : 0,
    Object.keys(value).map((key) => [key, shape((value as Record<string, unknown>)[key], seen)]),
    inside.map((each) => shape(each, seen)),
  ];
}

function expectAlike(got: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(got, wanted) && isDeepStrictEqual(shape(got), shape(wanted))) return;
  expect(got).toStrictEqual(wanted);
  expect(shape(got)).toStrictEqual(shape(wanted));
  throw new Error('The values differ in a way that expect() does not see');
}

/** An array with these properties and otherwise holes. */
function holes(length: number, properties: object = {}): unknown[] {
  const list: unknown[] = [];
  list.length = length;
  return Object.assign(list, properties);
}

class Point {
  x = 1;
  #hidden = 2;
  get sum(): number {
    return this.x + this.#hidden;
  }
}

class Hidden {
  #hidden = 1;
  get value(): number {
    return this.#hidden;
  }
}

const same = { shared: true };
const cycle: Record<string, unknown> = { name: 'cycle' };
cycle['self'] = cycle;
cycle['list'] = [cycle, [cycle]];

const examples: Record<string, () => unknown> = {
  undefined: () => undefined,
  null: () => null,
  '-0': () => -0,
  '[-0]': () => [-0],
  NaN: () => ({ not: Number.NaN, a: Number.POSITIVE_INFINITY, b: [Number.NEGATIVE_INFINITY] }),
  'numbers of all sizes': () => [1e21, 1e-7, 2 ** 53, 0.1 + 0.2, 5e-324, 1.7976931348623157e308],
  bigint: () => ({ big: [10n ** 30n, -1n] }),
  'an empty string': () => '',
  'a lone surrogate': () => ['\ud800', { '\udc00': '\udfff\ud800' }],
  'a surrogate pair at each place of a border': () =>
    Array.from({ length: 16 }, (_, i) => `${'x'.repeat(1010 + i)}😀`),
  'a string at each length of a border': () =>
    Array.from({ length: 16 }, (_, i) => 'é'.repeat(500 + i)),
  'NUL and line separators': () => '\0\u2028\u2029\\"\u007f',
  undefineds: () => ({ a: undefined, b: [undefined] }),
  'an array with holes': () => holes(5, { 1: 1, 3: 2 }),
  'an array of holes': () => holes(5),
  'a long array with one item': () => holes(1000, { 999: 1 }),
  'an array with properties': () => Object.assign([1, 2], { extra: 3 }),
  'an array with a hole and a property': () => holes(2, { 1: 2, extra: 3 }),
  'an array of a class': () => class extends Array {}.of(1, 2, 3),
  'a Date': () => [new Date(0), new Date(1e12)],
  'a Map and a Set': () => new Map<unknown, unknown>([[{ a: 1 }, new Set([1, [2]])]]),
  'a RegExp': () => /a+/giu,
  'boxed primitives': () => [Object(1), Object('text'), Object(true), Object(1n)],
  'typed arrays': () => [
    new Uint8Array([1, 2]),
    new Float64Array([0.5, -0, Number.NaN]),
    new BigInt64Array([1n]),
    new DataView(new ArrayBuffer(3)),
    new ArrayBuffer(9),
  ],
  'two views of one buffer': () => {
    const buffer = new ArrayBuffer(16);
    return [new Uint8Array(buffer, 3, 5), new Uint16Array(buffer, 4, 2), buffer];
  },
  'a Buffer': () => ({ buffer: Buffer.alloc(20, 'abc') }),
  '__proto__ as a key': () => JSON.parse('{"__proto__":{"a":1},"b":{"__proto__":null}}'),
  'constructor and the like as keys': () => ({ constructor: 1, hasOwnProperty: 2, valueOf: 3 }),
  'keys that are numbers': () => ({ b: 1, 10: 2, 9: 3, '-1': 4, '01': 5 }),
  'the same object twice': () => ({ a: same, b: [same, same] }),
  'the same array twice': () => {
    const list = [1];
    return [list, list];
  },
  'a cycle': () => cycle,
  'an instance of a class': () => [new Point()],
  'what inherits': () => Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true } }),
  'null-prototype': () => Object.assign(Object.create(null), { a: 1 }),
  'symbols as keys': () => ({ [Symbol('s')]: 1, b: 2 }),
  'what is not enumerable': () => Object.defineProperty({ a: 1 }, 'hidden', { value: 2 }),
  getters: () => ({
    get a() {
      return { b: 1 };
    },
  }),
  Errors: () => Object.assign(new RangeError('why', { cause: new Error('because') }), { code: 5 }),
  'objects in a deep chain': () => {
    let chain: unknown = null;
    for (let i = 0; i < 100; ++i) chain = [{ chain }];
    return chain;
  },
  'empty objects': () => [{}, new Map([[{}, new Set([{}])]]), { date: new Date(0), empty: [{}] }],
  'an empty object in the cause of an error': () => new Error('why', { cause: [{}, new Date(0)] }),
  'an instance of a class that hides its state': () => [new Hidden(), new Date(0)],
  'what as bytes looks like an empty object': () => [new Date(0), 'o{\0', Buffer.from('o{\0')],
  'an array with an iterator of its own': () => {
    class Texts extends Array<unknown> {
      override *[Symbol.iterator](): ArrayIterator<string> {
        for (let i = 0; i < this.length; ++i) yield String(this[i]);
        return undefined;
      }
    }
    return Texts.from([new Date(0), new Map([[1, 2]])]);
  },
  'what was made as something else than its prototype says': () =>
    [new Map([[1, 2]]), new Set([1]), new Date(0), /a/, new RangeError('far'), Object(5)].flatMap(
      (value) => [
        Object.setPrototypeOf(value, Object.prototype),
        Object.setPrototypeOf(structuredClone(value), null),
      ],
    ),
  'many values': () => Array.from({ length: 1000 }, (_, i) => ({ i })),
  'as many as the text takes, and one more': () =>
    [15, 16, 17].map((count) => Array.from({ length: count }, () => ({}))),
  'more primitives than the text takes': () =>
    [127, 128, 129].map((count) => Array.from({ length: count }, (_, i) => i)),
};

describe('a value comes out as structuredClone makes it', () => {
  it.each(Object.keys(examples))('%s', async (name) => {
    const make = examples[name] as () => unknown;
    for (const got of await received(make())) expectAlike(got, structuredClone(make()));
  });

  function sendAny(numRuns: number): void {
    const queue = values();
    const leaf = fc.oneof(
      fc.anything({
        maxDepth: 0,
        withBigInt: true,
        withBoxedValues: true,
        withTypedArray: true,
        withSparseArray: true,
      }),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(-0, Number.NaN, undefined, '\ud800', '__proto__', same),
      fc.date({ noInvalidDate: true }), // an invalid date is not equal to itself
    );
    const key = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.constantFrom('__proto__', 'constructor', 'length', '0', 'then', '\udc00'),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, depthSize: 'small' },
        leaf,
        fc.array(tie('value'), { maxLength: 6 }),
        fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: false }),
        fc.array(fc.tuple(tie('value'), tie('value'))).map((entries) => new Map(entries)),
        fc.array(tie('value'), { maxLength: 4 }).map((items) => new Set(items)),
        fc.sparseArray(tie('value'), { maxLength: 8 }),
        fc.tuple(tie('value'), tie('value')).map(([a, b]) => [a, b, a, { a }]),
        fc
          .tuple(fc.array(tie('value')), key)
          .map(([list, name]) =>
            name === 'length' ? list : Object.assign([...list], { [name]: list.length }),
          ),
        tie('value').map((inner) => Object.assign(new Point(), { inner })),
      ),
    }));
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), (items) => {
        // Enqueued together, to check that neighbouring items do not mix.
        for (const item of items) queue.enqueueSync(item);
        for (const item of items) expectAlike(queue.dequeueSync(), structuredClone(item));
      }),
      { seed, numRuns },
    );
  }

  const name = `whatever it is made of, %i times (seed ${seed})`;
  it.each([runs(150)])(name, { tags: 'property' }, sendAny);
  it.each([2_000])(name, { tags: ['property', 'long'] }, sendAny);

  it(`in batches, too (seed ${seed})`, { tags: 'property' }, async () => {
    const queue = values();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.anything({ withBigInt: true, withMap: true }), {
          minLength: 1,
          maxLength: 8,
        }),
        async (items) => {
          for (const item of items) queue.enqueueSync(item);
          const batch = await queue.dequeueMany(8);
          expect(batch).toHaveLength(items.length);
          batch.forEach((got, i) => {
            expectAlike(got, structuredClone(items[i]));
          });
        },
      ),
      { seed, numRuns: runs(500) },
    );
  });

  it('with a toJSON that is data', async () => {
    for (const item of [{ toJSON: 1 }, [{ toJSON: 'x' }], Object.assign([1], { toJSON: 2 })]) {
      for (const got of await received(item)) expectAlike(got, structuredClone(item));
    }
  });

  it('with a toJSON method that it inherits: nobody calls it', async () => {
    class Rich {
      a = 1;
      toJSON(): never {
        throw new Error('called');
      }
    }
    for (const got of await received([new Rich(), new Date(5)])) {
      expectAlike(got, [{ a: 1 }, new Date(5)]);
    }
    const prototype = Object.prototype as { toJSON?: unknown };
    prototype.toJSON = () => 'called';
    try {
      const queue = values();
      queue.enqueueSync({ a: [1], b: 'text' });
      expectAlike(queue.dequeueSync(), { a: [1], b: 'text' });
    } finally {
      delete prototype.toJSON;
    }
  });

  it('with setters and enumerable properties on Object.prototype', async () => {
    const { prototype } = Object;
    const keys = ['a', 'cause', 'signal', 'generation', 'length'];
    for (const key of keys) {
      Object.defineProperty(prototype, key, {
        configurable: true,
        enumerable: key === 'a',
        get: () => undefined,
        set: () => {
          throw new Error(`set ${key}`);
        },
      });
    }
    let got: unknown[];
    try {
      got = await received([1, 'text', new Map([[1, 2]])]);
    } finally {
      for (const key of keys) Reflect.deleteProperty(prototype, key);
    }
    for (const each of got) expectAlike(each, [1, 'text', new Map([[1, 2]])]);
  });

  it('when a getter calls the queue', () => {
    const queue = values();
    const make = (): unknown => ({
      first: same,
      get calls() {
        queue.tryEnqueue({ inner: [1] });
        return 'done';
      },
      second: same,
    });
    queue.enqueueSync(make());
    let got: unknown = { inner: [1] };
    while (isDeepStrictEqual(got, { inner: [1] })) got = queue.dequeueSync();
    expectAlike(got, { first: same, calls: 'done', second: same });
  });

  it('when a getter of a cycle calls the queue', () => {
    const queue = values(100);
    const item = {
      get calls() {
        queue.tryEnqueue('inner');
        return 1;
      },
      self: undefined as unknown,
    };
    item.self = item;
    queue.enqueueSync(item);
    let got: unknown = 'inner';
    while (got === 'inner') got = queue.dequeueSync();
    expect((got as { self: unknown }).self).toBe(got);
  });

  it('as it is at the call: later changes are not seen', async () => {
    const queue = values(1);
    const item = { list: [1], map: new Map([[1, 1]]) };
    await queue.enqueue(item);
    const wait = queue.enqueue(item);
    item.list.push(2);
    item.map.clear();
    expectAlike(queue.dequeueSync(), { list: [1], map: new Map([[1, 1]]) });
    await wait;
    expectAlike(queue.dequeueSync(), { list: [1], map: new Map([[1, 1]]) });
  });
});

describe('large values', () => {
  it.each([
    ['Latin letters', 'é'.repeat(3_000_000)],
    ['plain text', 'plain text '.repeat(400_000)],
    ['ideographs', '漢字😀'.repeat(700_000)],
    ['an object with text', { text: 'x"\n'.repeat(1_500_000) }],
    ['bytes', new Uint8Array(5_000_000).fill(7)],
    ['an array of numbers', Array.from({ length: 300_000 }, (_, i) => i / 3)],
  ])('%s', async (_, item) => {
    for (const got of await received(item)) expect(isDeepStrictEqual(got, item)).toBe(true);
  });

  // Both stand in this file so that they run in turn: each takes 2 GB of memory.
  it.each([24_000_000, 32 * 1024 - 11])(
    'come out in one batch that is longer than any string: %d letters each',
    { tags: 'long' },
    async (length) => {
      globalThis.gc?.(); // of what the other has left
      const text = 'x'.repeat(length);
      const count = Math.ceil(2 ** 29 / length) + 1;
      const queue = values(count);
      for (let i = 0; i < count; ++i) queue.enqueueSync(text);
      const batch = await queue.dequeueMany(2 * count);
      expect(batch).toHaveLength(count);
      expect(batch.every((each) => each === text)).toBe(true);
      expect(queue.size).toBe(0);
    },
  );
});

describe('what cannot be cloned', () => {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  port2.close();
  it.each([
    ['a function', () => {}],
    ['a function inside', { deep: [{ f: () => {} }] }],
    ['a class', Point],
    ['a symbol', Symbol('s')],
    ['a symbol inside', [Symbol.iterator]],
    ['a proxy', new Proxy({}, {})],
    ['a proxy of an array, inside', { list: new Proxy([1], {}) }],
    ['a revoked proxy', revoked()],
    ['a hostile proxy', hostile()],
    ['a WeakMap', new WeakMap()],
    ['a WeakRef, inside', [new WeakRef({})]],
    ['a promise', Promise.resolve(1)],
    ['a generator', (function* () {})()],
    ['a toJSON method of its own', { toJSON: () => 1 }],
    ['a MessagePort', port1],
    ['a MessagePort inside', { port: port1 }],
    ['a shared buffer', new SharedArrayBuffer(8)],
    ['a view of a shared buffer', { view: new Uint8Array(new SharedArrayBuffer(8)) }],
    ['an AbortSignal', new AbortController().signal],
    ['an event inside', [{ event: new Event('e') }]],
    ['a URL behind many values', [...Array.from({ length: 500 }, () => 1), new URL('data:,')]],
  ])('is refused: %s', async (_, item) => {
    const queue = values();
    await expect(queue.enqueue(item)).rejects.toMatchObject(REFUSED);
    expect(thrown(() => queue.enqueueSync(item))).toMatchObject(REFUSED);
    expect(thrown(() => queue.tryEnqueue(item))).toMatchObject(REFUSED);
    expect(queue.size).toBe(0);
    queue.enqueueSync([same, same]); // state of the refused item must not affect the next item
    expectAlike(queue.dequeueSync(), [same, same]);
  });

  const root: Record<string, unknown> = {};
  root['list'] = [{ root }, { root }];
  root['f'] = () => {};
  it.each([
    ['item', 'argument', () => {}],
    ['item.deep[1].f', 'property', { deep: [{}, { f: () => {} }] }],
    ['item.own.at', 'property', { own: Object.assign(new Point(), { at: Symbol('s') }) }],
    ['item["a-b"][0]', 'property', { 'a-b': [Promise.resolve(1)] }],
    [
      '[...item.map][1][0]',
      'property',
      {
        map: new Map<unknown, unknown>([
          [1, 1],
          [() => {}, 2],
        ]),
      },
    ],
    ['[...item.map][0][1].f', 'property', { map: new Map([[1, { f: () => {} }]]) }],
    ['[...item][1]', 'property', new Set([1, new WeakMap()])],
    ['item.cause.f', 'property', new Error('with a cause', { cause: { f: () => {} } })],
    ['item.port', 'property', { text: 'x'.repeat(2_000), port: port1 }],
    ['item.view', 'property', { view: new Uint8Array(new SharedArrayBuffer(8)) }],
    ['item.proxy', 'property', { proxy: hostile() }],
    ['item.options.signal', 'property', { options: { signal: AbortSignal.abort() } }],
    ['item.f', 'property', root], // which its own list contains
  ])('is named in the error: %s', (path, what, item) => {
    const message = `The "${path}" ${what} must be a value that can be cloned. Received `;
    expect(() => values().enqueueSync(item)).toThrow(message);
  });

  it('is not searched in all of a value that has very many parts, or levels', () => {
    const wide = [...Array.from({ length: 20_000 }, () => ({})), { f: () => {} }];
    expect(() => values().enqueueSync({ wide })).toThrow('The "item.wide" property must');
    let deep: object = { f: () => {} };
    for (let level = 0; level < 100; ++level) deep = { in: deep };
    expect(() => values().enqueueSync(deep)).toThrow(`The "item${'.in'.repeat(64)}" property must`);
  });

  it.each([
    ['a getter', throwing('a')],
    ['a getter inside', [{ b: [throwing('a')] }]],
    ['a getter in what is serialized', new Map([[1, throwing('a')]])],
  ])('is refused with what %s throws', async (_, item) => {
    const queue = values();
    await expect(queue.enqueue(item)).rejects.toThrow('the getter of a');
    expect(() => queue.enqueueSync(item)).toThrow('the getter of a');
    expect(() => queue.tryEnqueue(item)).toThrow('the getter of a');
    expect(queue.size).toBe(0);
  });

  it('is refused before anything else is known of the queue', async () => {
    const queue = values(1);
    queue.close();
    await expect(queue.enqueue(() => {})).rejects.toMatchObject(REFUSED);
    const signal = AbortSignal.abort();
    await expect(queue.enqueue(() => {}, { signal })).rejects.toMatchObject(REFUSED);
  });
});

describe("a queue of 'bytes'", () => {
  const bytes = (capacity = 8): BoundedQueue<Uint8Array> =>
    new BoundedQueue({ capacity, codec: 'bytes' });

  it.each([0, 1, 31, 32, 33, 1023, 1024, 1025, 1_000_000])('carries %i', async (size) => {
    const item = Uint8Array.from({ length: size }, (_, i) => i * 7);
    const queue = bytes();
    for (let i = 0; i < 5; ++i) queue.enqueueSync(item);
    const all = [queue.dequeueSync(), await queue.dequeue(), queue.tryDequeue()];
    for (const got of [...all, ...(await queue.dequeueMany(2))]) {
      expect(got).toBeInstanceOf(Uint8Array);
      expect(Buffer.compare(got as Uint8Array, item)).toBe(0);
    }
  });

  it('carries what a view shows, and no more', async () => {
    const queue = bytes();
    const buffer = Uint8Array.from({ length: 64 }, (_, i) => i).buffer;
    queue.enqueueSync(new Uint8Array(buffer, 5, 3));
    queue.enqueueSync(Buffer.from(buffer, 7, 2));
    queue.enqueueSync(new (class Derived extends Uint8Array {})(buffer, 60));
    queue.enqueueSync(new Uint8Array(new SharedArrayBuffer(2)).fill(9));
    expect((await queue.dequeueMany(9)).map((item) => [...item])).toEqual([
      [5, 6, 7],
      [7, 8],
      [60, 61, 62, 63],
      [9, 9],
    ]);
  });

  it.each([
    ['a string', 'text'],
    ['an array', [1, 2]],
    ['a DataView', new DataView(new ArrayBuffer(2))],
    ['an ArrayBuffer', new ArrayBuffer(2)],
    ['signed bytes', new Int8Array(2)],
    ['clamped bytes', new Uint8ClampedArray(2)],
    ['numbers', new Float32Array(2)],
    ['what only inherits', Object.create(Uint8Array.prototype)],
    ['other numbers that pretend', Object.setPrototypeOf(new Int32Array(2), Uint8Array.prototype)],
    ['a proxy', new Proxy(new Uint8Array(2), {})],
    ['a hostile proxy', hostile()],
    ['nothing', undefined],
  ])('refuses %s', async (_, item) => {
    const queue = bytes();
    await expect(queue.enqueue(item as never)).rejects.toMatchObject(REFUSED);
    expect(thrown(() => queue.enqueueSync(item as never))).toMatchObject(REFUSED);
    expect(thrown(() => queue.tryEnqueue(item as never))).toMatchObject(REFUSED);
    expect(queue.size).toBe(0);
  });

  it('copies: what becomes of the source changes nothing', async () => {
    const queue = bytes(1);
    const item = new Uint8Array([1, 2, 3]);
    queue.enqueueSync(item);
    item[0] = 9;
    expect([...queue.dequeueSync()]).toEqual([1, 2, 3]);
  });

  it('copies what has to wait, too', async () => {
    const queue = bytes(1);
    queue.enqueueSync(new Uint8Array());
    const sources = [Buffer.from('changed'), new Uint8Array(Buffer.from('given away'))];
    const waits = sources.map((source) => queue.enqueue(source));
    sources[0]?.fill(0);
    structuredClone(sources[1], { transfer: [sources[1]?.buffer as ArrayBuffer] });
    const got: string[] = [];
    for (let i = 0; i < 3; ++i) got.push(Buffer.from(await queue.dequeue()).toString());
    await Promise.all(waits);
    expect(got).toEqual(['', 'changed', 'given away']);
  });

  it.each([0, 1, 7, 8, 100, 2000])('hands over items of %i that are independent', async (size) => {
    const queue = bytes(2100);
    for (let i = 0; i < 2100; ++i) queue.enqueueSync(new Uint8Array(size).fill(i));
    const items = await queue.dequeueMany(2100);
    expect(items.every((item, i) => item.length === size && item.every((b) => b === i % 256))).toBe(
      true,
    );
    for (const item of items) expect(item.byteOffset % 8).toBe(0);
    const [first, second, third] = items as [Uint8Array, Uint8Array, Uint8Array];
    second.fill(255);
    expect([...first, ...third]).toEqual([
      ...new Uint8Array(size),
      ...new Uint8Array(size).fill(2),
    ]);
  });

  it('hands over items of which one cannot be given away with the others', async () => {
    const queue = bytes();
    for (let i = 0; i < 4; ++i) queue.enqueueSync(new Uint8Array(8).fill(i));
    const items = await queue.dequeueMany(4);
    const [first] = items as [Uint8Array];
    thrown(() => structuredClone(first, { transfer: [first.buffer as ArrayBuffer] }));
    expect(items.map((item) => item[0])).toEqual([0, 1, 2, 3]);
  });

  it('wakes those that wait, of whatever size the item is', async () => {
    const queue = bytes(1);
    const waits = [queue.dequeue(), queue.dequeueMany(3)];
    for (const text of ['one', 'two']) await queue.enqueue(Buffer.from(text));
    const [one, two] = (await Promise.all(waits)) as [Uint8Array, Uint8Array[]];
    expect([one, ...two].map((item) => Buffer.from(item).toString())).toEqual(['one', 'two']);
  });
});

it('takes a Date where v8 has no Serializer, as in Bun', () => {
  const script = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: '1.4.5' } });
    require('node:v8').Serializer = require('node:v8').Deserializer = undefined;
    const { BoundedQueue } = require('allstop');
    const queue = new BoundedQueue({ capacity: 1 });
    queue.tryEnqueue(new Date(0));
    console.log(queue.tryDequeue().toJSON());`;
  const told = execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  expect(told).toBe('1970-01-01T00:00:00.000Z\n');
});
