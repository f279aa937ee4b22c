// Objects of Node's own, and of WebAssembly, are shared or have no copy: a queue refuses them, and
// does not make empty objects of them.

import { BlockList, SocketAddress } from 'node:net';
import { BoundedQueue } from 'allstop';
import { describe, expect, it } from 'vitest';
import { wasmModule } from '../../support/wasm-module.ts';

const REFUSED = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };

describe.each([
  ['a Blob', () => new Blob(['text'])],
  ['a File', () => new File(['text'], 'name')],
  ['a BlockList', () => new BlockList()],
  ['a SocketAddress', () => new SocketAddress({ address: '127.0.0.1' })],
  ['a ReadableStream', () => new ReadableStream()],
  ['a WebAssembly.Module', () => wasmModule],
  // Of these structuredClone makes empty objects: in Node 20 of all, later of the last two.
  ['a URL', () => new URL('http://a/')],
  ['Headers', () => new Headers({ a: 'b' })],
  ['a FormData', () => new FormData()],
  ['an AbortSignal', () => new AbortController().signal],
  ['an Event', () => new Event('e')],
])('%s', (_what, make) => {
  it.each<[where: string, path: string, wrap: (value: object) => unknown]>([
    ['itself', 'item', (value) => value],
    ['in an object', 'item.deep[1].value', (value) => ({ deep: [{}, { value, empty: {} }] })],
    [
      'as the key of a Map',
      '[...item][1][0]',
      (value) =>
        new Map([
          [{}, {}],
          [value, {}],
        ]),
    ],
    ['in a Map in a Set', '[...[...item][0]][0][1]', (value) => new Set([new Map([[1, value]])])],
    ['in the cause of an error', 'item.cause[0]', (cause) => new Error('why', { cause: [cause] })],
    [
      'beside many values',
      'item.value',
      (value) => ({ list: Array.from({ length: 1000 }, () => ({})), value }),
    ],
  ])('is refused %s, by its name', async (_where, path, wrap) => {
    const queue = new BoundedQueue({ capacity: 8 });
    const item = wrap(make());
    await expect(queue.enqueue(item)).rejects.toMatchObject(REFUSED);
    expect(() => queue.tryEnqueue(item)).toThrow(`The "${path}" `);
    expect(() => queue.enqueueSync(item)).toThrow('must be a value that can be cloned. Received ');
    expect(queue.size).toBe(0);
    queue.enqueueSync('next');
    expect(queue.dequeueSync()).toBe('next');
  });
});

it.each<[where: string, path: string, wrap: (value: object) => unknown]>([
  ['itself', 'item', (value) => value],
  ['in an object', 'item.deep[1].reason', (reason) => ({ deep: [1, { reason }] })],
  ['as a cause', 'item.cause', (cause) => new Error('why', { cause })],
])(
  'the reason of an aborted signal is refused %s: V8 would make an Error of it',
  (_, path, wrap) => {
    const queue = new BoundedQueue({ capacity: 8 });
    const item = wrap(AbortSignal.abort().reason as object);
    expect(() => queue.tryEnqueue(item)).toThrow(`The "${path}" `);
    expect(() => queue.tryEnqueue(item)).toThrow(/cloned\. Received an instance of DOMException$/);
    expect(queue.size).toBe(0);
  },
);

it('a module in what is not cloned, a field of an error, is not looked for', () => {
  const queue = new BoundedQueue<Error>({ capacity: 1 });
  queue.enqueueSync(Object.assign(new Error('why'), { wasmModule }));
  expect(queue.dequeueSync().message).toBe('why');
});

it('the search for a module calls no getter', () => {
  const queue = new BoundedQueue({ capacity: 1 });
  let calls = 0;
  const item = {
    get count() {
      return ++calls;
    },
  };
  queue.enqueueSync(new Map([[1, item]]));
  expect(queue.dequeueSync()).toEqual(new Map([[1, { count: 1 }]]));
  expect(calls).toBe(1);
});
