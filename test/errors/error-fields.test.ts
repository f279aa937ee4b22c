// An error arrives with all its own fields that can be cloned, and with the references between
// them. A value that cannot be cloned becomes a marker that says so; the others survive.

import { Socket } from 'node:net';
import { Coordinator } from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostile, revoked, throwing } from '../support/odd-values.ts';
import { OtherThread, type Tools } from '../support/other-thread.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

/** Fields of every kind. */
type Fields = any;

/** The result of `look` in another thread, for an error of this thread with these fields. */
function seen<T>(fields: object, look: (error: Fields, tools: Tools) => T): Promise<Awaited<T>> {
  const coord = new Coordinator();
  coord.requestStop(Object.assign(new Error('the message'), fields));
  return there.see(coord, look);
}

/** An error of another thread, with the fields that `make` returns there, as it arrives here. */
async function arrived(make: () => object): Promise<Fields> {
  const coord = new Coordinator();
  await there.report(coord, make);
  return coord.stopRecord?.error;
}

const NOT_CARRIED = /^\[allstop: not carried: .+ \(.+\)\]$/;

describe('fields that are carried', () => {
  it('values of every kind that can be cloned', async () => {
    const value = {
      nothing: null,
      missing: undefined,
      zero: -0,
      nan: Number.NaN,
      big: 2n ** 70n,
      date: new Date(5),
      never: new Date(Number.NaN),
      pattern: /a+/giu,
      boxed: [Object('text'), Object(5), Object(true), Object(5n)],
      map: new Map<unknown, unknown>([
        [{ key: 1 }, new Set([1, 'a'])],
        ['b', [new Map()]],
      ]),
      bytes: new Uint8Array([1, 2, 3]),
      numbers: new Float64Array([1.5, Number.NEGATIVE_INFINITY]),
      bigs: new BigInt64Array([-5n]),
      view: new DataView(new Uint8Array([7, 8, 9]).buffer, 1),
      memory: new Uint8Array([4, 5]).buffer,
      bare: Object.assign(Object.create(null), { a: 1 }),
      odd: Object.defineProperty({}, '__proto__', { value: 'a key', enumerable: true }),
      empty: [[], {}, new Map(), new Set(), '', new Uint8Array()],
    };
    expect(await seen({ value }, (error) => error.value)).toEqual(structuredClone(value));
    expect(Object.keys(await seen({ value }, (error) => error.value))).toEqual(Object.keys(value));
  });

  it('from another thread, too', async () => {
    const error = await arrived(() =>
      Object.assign(new TypeError('m'), { map: new Map([[{ a: 1n }, new Set([new Date(5)])]]) }),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(error.map).toEqual(new Map([[{ a: 1n }, new Set([new Date(5)])]]));
  });

  it('holes stay holes, and an enormous array with three items is no matter', async () => {
    const sparse: unknown[] = [];
    sparse[1] = 'one';
    sparse[4_000_000_000] = 'far';
    sparse.length = 2 ** 32 - 1;
    const named = Object.assign([1, 2], { name: 'with a name' });
    const holes: number[] = [];
    holes[1] = 1;
    holes.length = 3;
    const got = await seen({ sparse, named, holes }, (error) => [
      [error.sparse.length, Object.keys(error.sparse), error.sparse[4_000_000_000]],
      [[...error.named], error.named.name],
      [Object.keys(error.holes), error.holes.length],
    ]);
    expect(got).toEqual([
      [2 ** 32 - 1, ['1', '4000000000'], 'far'],
      [[1, 2], 'with a name'],
      [['1'], 3],
    ]);
  });

  it('a view has memory of its own, and a Buffer is one', async () => {
    const bytes = new Uint8Array([0, 1, 2, 3]).subarray(1, 3);
    const got = await seen({ bytes, buffer: Buffer.from('text') }, (error) => [
      error.bytes.buffer.byteLength,
      error.bytes.byteOffset,
      Buffer.isBuffer(error.buffer) && error.buffer.toString(),
    ]);
    expect(got).toEqual([2, 0, 'text']);
  });

  it('cycles and shared references stay what they are', async () => {
    const shared = { text: 'shared' };
    const bytes = new Uint8Array(2);
    const error: Fields = new Error('cyclic');
    Object.assign(error, {
      self: error,
      cause: error,
      deep: { list: [error] },
      bytes,
      again: bytes,
    });
    Object.assign(error, { a: shared, b: new Map([[shared, new Set([shared, error])]]) });
    const inner = new RangeError('inner', { cause: error });
    error.inner = inner;
    error.both = [inner, inner];
    error.map = new Map();
    error.map.set('self', error.map);
    error.set = new Set([error.map]);
    error.set.add(error.set);
    const coord = new Coordinator();
    coord.requestStop(error);
    const checks = await there.see(coord, (copy: Fields) => ({
      self: copy.self === copy,
      cause: copy.cause === copy,
      list: copy.deep.list[0] === copy,
      key: copy.b.has(copy.a),
      set: copy.b.get(copy.a).has(copy.a) && copy.b.get(copy.a).has(copy),
      view: copy.bytes === copy.again,
      selfMap: copy.map.get('self') === copy.map,
      selfSet: copy.set.has(copy.set) && copy.set.has(copy.map),
      inner: copy.inner.cause === copy,
      both: copy.both[0] === copy.inner && copy.both[1] === copy.inner,
    }));
    expect(Object.entries(checks).filter(([, holds]) => !holds)).toEqual([]);
  });

  it('a chain of causes of any length, and a cycle of causes', async () => {
    let error = new Error('0');
    for (let i = 1; i < 10_000; i++) error = new Error(`${i}`, { cause: error });
    const first = new Error('first');
    first.cause = new TypeError('second', { cause: first });
    const got = await seen({ error, first }, (copy) => {
      let length = 0;
      let last: Fields;
      for (let each = copy.error; each instanceof Error; each = each.cause as Error) {
        last = each;
        length++;
      }
      return [length, last.message, copy.first.cause.cause === copy.first];
    });
    expect(got).toEqual([10_000, '0', true]);
  });

  it('non-enumerable fields stay so; an accessor becomes the value that it had', async () => {
    const error = Object.defineProperties(new Error('m'), {
      hidden: { value: 'hidden' },
      computed: { get: () => 'computed', enumerable: true },
    });
    const coord = new Coordinator();
    coord.requestStop(error);
    const got = await there.see(coord, (copy: Fields) => [
      Object.keys(copy),
      copy.hidden,
      Object.getOwnPropertyDescriptor(copy, 'computed')?.value,
    ]);
    expect(got).toEqual([['computed'], 'hidden', 'computed']);
  });

  it('an instance becomes a plain object with its fields; inherited ones and symbols do not go', async () => {
    class Point {
      x = 1;
      readonly #y = 2;
      get y(): number {
        return this.#y;
      }
    }
    const fields = { point: new Point(), [Symbol('key')]: 'by symbol', list: { [Symbol('k')]: 1 } };
    const got = await seen(fields, (copy) => [
      copy.point,
      Object.getPrototypeOf(copy.point) === Object.prototype,
      Object.getOwnPropertySymbols(copy).length,
      Object.getOwnPropertySymbols(copy.list).length,
    ]);
    expect(got).toEqual([{ x: 1 }, true, 0, 0]);
  });

  it('methods that convert an object do not go, so that its copy can be converted', async () => {
    const coord = new Coordinator();
    coord.requestStop({
      message: 'bad month',
      toString: () => 'a UserException',
      valueOf: () => 5,
      more: Object.assign(new Error('inner'), { toString: () => 'inner text' }),
    });
    const look = (copy: Fields, { inspect }: Tools): unknown[] => [
      String(copy),
      String(copy.more),
      inspect(copy).length > 0,
    ];
    expect(await there.see(coord, look)).toEqual(['[object Object]', 'Error: inner', true]);
  });

  it('a message or a stack that is no string is a field like any other', async () => {
    const odd = Object.assign(new Error('m'), { message: { code: 5 }, stack: ['a frame'] });
    const coord = new Coordinator();
    coord.requestStop(odd);
    expect(await there.see(coord, (copy: Fields) => [copy.message, copy.stack])).toEqual([
      { code: 5 },
      ['a frame'],
    ]);
  });

  it('large ones: a million items, and a text of 16 MB', { tags: 'long' }, async () => {
    const items = Array.from({ length: 1_000_000 }, (_, i) => i);
    const got = await seen({ items, text: 'x'.repeat(2 ** 24) }, (copy) => [
      copy.items.length,
      copy.items[999_999],
      copy.text.length,
    ]);
    expect(got).toEqual([1_000_000, 999_999, 2 ** 24]);
    const coord = new Coordinator();
    coord.requestStop(new Error('é'.repeat(2 ** 22)));
    const look = (copy: Fields): unknown => [copy.message.length, copy.stack.includes('éé')];
    expect(await there.see(coord, look)).toEqual([2 ** 22, true]);
  });
});

describe('fields that cannot be carried', () => {
  it.each<[string, unknown, string]>([
    ['a function', function helper() {}, 'function helper'],
    ['a class', class Helper extends Coordinator {}, 'function Helper'],
    ['a symbol', Symbol('sign'), 'Symbol(sign)'],
    ['a WeakMap', new WeakMap(), '[object WeakMap]'],
    ['a WeakSet', new WeakSet(), '[object WeakSet]'],
    ['a WeakRef', new WeakRef({}), '[object WeakRef]'],
    ['a promise', Promise.resolve(5), '[object Promise]'],
    ['a promise with a field', Object.assign(Promise.resolve(), { field: 1 }), '[object Promise]'],
    ['a WeakMap with a field', Object.assign(new WeakMap(), { field: 1 }), '[object WeakMap]'],
    ['a generator', (function* () {})(), '[object Generator]'],
    ['an iterator', [1][Symbol.iterator](), '[object Array Iterator]'],
    ['a SharedArrayBuffer', new SharedArrayBuffer(8), '[object SharedArrayBuffer]'],
    ['a boxed symbol', Object(Symbol('boxed')), 'object'],
    ['a URL, which hides its state', new URL('http://example.test/a'), 'http://example.test/a'],
    ['headers', new Headers({ a: 'b' }), '[object Headers]'],
    ['a revoked proxy', revoked(), 'object'],
    ['a revoked array', revoked([]), 'object'],
    ['a hostile proxy', hostile(), 'object'],
  ])('%s becomes a marker, wherever it is', async (_, value, described) => {
    const fields = {
      value,
      list: [1, value, 3],
      nested: { value, other: 'survives' },
      map: new Map<unknown, unknown>([
        ['key', value],
        ['other', 5],
      ]),
      set: new Set([value, 5]),
      cause: Object.assign(new TypeError('the cause'), { value, other: 'survives' }),
    };
    const got = await seen(fields, ({ cause, ...copy }) => ({
      ...copy,
      cause: [cause.constructor.name, cause.message, cause.value, cause.other],
    }));
    const { value: marker } = got as { value: string };
    expect(marker).toMatch(NOT_CARRIED);
    expect(marker).toContain(`not carried: ${described} (`);
    expect(got).toEqual({
      value: marker,
      list: [1, marker, 3],
      nested: { value: marker, other: 'survives' },
      map: new Map<unknown, unknown>([
        ['key', marker],
        ['other', 5],
      ]),
      set: new Set([marker, 5]),
      cause: ['TypeError', 'the cause', marker, 'survives'],
    });
  });

  it('an accessor that throws becomes a marker with its reason', async () => {
    const error = Object.defineProperties(
      Object.assign(new Error('m'), { nested: throwing('secret'), other: 5 }),
      Object.getOwnPropertyDescriptors(throwing('field')) as PropertyDescriptorMap,
    );
    const coord = new Coordinator();
    coord.requestStop(error);
    const [field, secret, other] = await there.see(coord, (copy: Fields) => [
      copy.field,
      copy.nested.secret,
      copy.other,
    ]);
    expect(field).toBe('[allstop: not carried: property field (the getter of field)]');
    expect(secret).toBe('[allstop: not carried: property secret (the getter of secret)]');
    expect(other).toBe(5);
  });

  it('a socket arrives as what can be told of it, with markers for the rest', async () => {
    const socket = new Socket();
    const got = await seen({ socket, other: 5 }, (copy) => [
      typeof copy.socket,
      copy.socket.allowHalfOpen,
      copy.other,
    ]);
    expect(got).toEqual(['object', false, 5]);
    socket.destroy();
  });

  it.each([
    [
      'a getter makes a new error at each look',
      'cause',
      () => {
        // An object with the prototype of an error: it has no stack, whose text takes most time.
        const lazy = (): Error => Object.create(Error.prototype, { cause: { get: lazy } });
        return lazy();
      },
    ],
    [
      'a proxy wraps all that it gives in new proxies',
      'left',
      () => {
        const node: Record<string, unknown> = {};
        Object.assign(node, { left: node, right: node });
        const wrap = (object: object): object =>
          new Proxy(object, {
            get: (target, key) => {
              const value: unknown = Reflect.get(target, key);
              return value === node ? wrap(node) : value;
            },
          });
        return wrap(node);
      },
    ],
  ])('what never ends is cut: %s', async (_, key, make) => {
    const coord = new Coordinator();
    coord.requestStop(Object.assign(new Error('the message'), { key, endless: make() }));
    const got = await there.see(coord, (copy: Fields) => {
      let inner = copy.endless;
      while (typeof inner === 'object') inner = inner[copy.key];
      return inner;
    });
    expect(got).toMatch(NOT_CARRIED);
  });

  it('an AbortError with a new cause at each look is an echo of nothing', async () => {
    const abort = (): Error => {
      const name = { value: 'AbortError' };
      return Object.create(Error.prototype, { name, cause: { get: abort } });
    };
    const coord = new Coordinator();
    coord.requestStop();
    coord.requestStop(abort());
    expect(coord.stopRecord?.suppressed).toHaveLength(1);
  });

  it('a Map or Set of a class arrives with its own entries, whatever its iterator gives', async () => {
    class EndlessMap extends Map<unknown, unknown> {
      override *[Symbol.iterator](): MapIterator<[unknown, unknown]> {
        for (;;) yield [{}, {}];
      }
    }
    class EndlessSet extends Set<unknown> {
      override *[Symbol.iterator](): SetIterator<unknown> {
        for (;;) yield {};
      }
    }
    const fields = { map: new EndlessMap([['a', 1]]), set: new EndlessSet(['b']) };
    expect(await seen(fields, ({ map, set }) => ({ map, set }))).toEqual({
      map: new Map([['a', 1]]),
      set: new Set(['b']),
    });
  });

  it.each(['objects', 'arrays', 'maps', 'sets'])(
    'what is nested too deeply ends in a marker: 100,000 %s, from here and from there',
    async (kind) => {
      const make = ({ argument }: Tools & { argument: string }): Error => {
        const wrap: Record<string, (inner: unknown) => unknown> = {
          objects: (inner) => ({ inner }),
          arrays: (inner) => [inner],
          maps: (inner) => new Map([[0, inner]]),
          sets: (inner) => new Set([inner]),
        };
        let deep: unknown = 'the bottom';
        for (let i = 0; i < 100_000; i++) deep = wrap[argument]?.(deep);
        return Object.assign(new TypeError('deep'), { deep, other: 5 });
      };
      const look = (copy: Fields): unknown => {
        let depth = 0;
        let inner = copy.deep;
        for (; typeof inner === 'object'; depth++) {
          inner =
            inner instanceof Map || inner instanceof Set
              ? [...inner.values()][0]
              : (inner.inner ?? inner[0]);
        }
        return { depth, inner, name: copy.name, other: copy.other };
      };
      const expected = {
        depth: 500,
        inner: expect.stringMatching(/^\[allstop: not carried: .* \(it is nested too deeply\)\]$/),
        name: 'TypeError',
        other: 5,
      };
      const here = new Coordinator();
      here.requestStop(make({ argument: kind } as never));
      expect(await there.see(here, look)).toEqual(expected);
      // A worker has a larger stack than the main thread, which has to decode the error.
      const coord = new Coordinator();
      await there.report(coord, make, kind);
      expect(look(coord.stopRecord?.error)).toEqual(expected);
      await expect(coord.join()).rejects.toBe(coord.stopRecord?.error);
    },
  );

  it('depths that add up through shared values overflow nobody', async () => {
    // The last object of each chain refers to the first object of the previous chain.
    const make = (): Error => {
      const errors: Error[] = [];
      let chain: object = {};
      for (let i = 0; i < 200; i++) {
        for (let depth = 0; depth < 450; depth++) chain = { chain };
        errors.push(Object.assign(new Error(`${i}`), { chain }));
      }
      return new AggregateError(errors, 'chained');
    };
    const coord = new Coordinator();
    await there.report(coord, make);
    const error = coord.stopRecord?.error as AggregateError;
    expect(error.errors).toHaveLength(200);
  });
});
