// allstop_from_napi, with which other addons take a Coordinator: it recognises any other value
// without a crash, and without running JavaScript of that value.

import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { hostile, oddValues, revoked } from '../support/odd-values.ts';
import { addon } from '../support/test-addon.ts';

const OK = 0;
const INVALID_HANDLE = 100;

class Extended extends Coordinator {
  readonly extra = 5;
}

describe('allstop_from_napi', () => {
  it('takes a coordinator, and one of a derived class', () => {
    const coord = new Coordinator();
    for (let i = 0; i < 1000; i++) expect(addon.status(coord)).toBe(OK);
    expect(addon.status(new Extended())).toBe(OK);
    expect(addon.status(coord.child())).toBe(OK);
    expect(addon.status(Coordinator.attach(coord.handle))).toBe(OK);
    expect(addon.status(Object.freeze(new Coordinator()))).toBe(OK);
  });

  it('takes the signal of a coordinator for the coordinator, also an old one', async () => {
    const coord = new Coordinator();
    const { signal } = coord;
    expect(addon.status(signal)).toBe(OK);
    coord.requestStop();
    await coord.join();
    expect(addon.status(signal)).toBe(OK);
    coord.clearStop();
    expect(coord.signal).not.toBe(signal);
    addon.start(signal as never, 'request-error', 'by-signal', 'Error|by the old signal|');
    addon.openGate('by-signal');
    await coord.waitForStop();
    expect(coord.stopRecord?.error).toMatchObject({ message: 'by the old signal' });
  });

  it.each([
    ['an AbortSignal of the program', new AbortController().signal],
    ['a signal that follows that of a coordinator', AbortSignal.any([new Coordinator().signal])],
  ])('refuses %s', (_, value) => {
    expect(addon.status(value)).toBe(INVALID_HANDLE);
  });

  it('takes one whose prototype was taken away: the object is what counts', () => {
    const coord = new Coordinator();
    Object.setPrototypeOf(coord, null);
    expect(addon.status(coord)).toBe(OK);
  });

  it('takes one that is stopped, joined, or disposed of', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    await coord.join();
    expect(addon.status(coord)).toBe(OK);
    await coord[Symbol.asyncDispose]();
    expect(addon.status(coord)).toBe(OK);
  });

  it.each(oddValues().map(({ label, value }) => [label, value]))('refuses %s', (_, value) => {
    expect(addon.status(value)).toBe(INVALID_HANDLE);
  });

  it.each([
    ['the handle, which is for other JavaScript threads', new Coordinator().handle],
    ['what only inherits from a coordinator', Object.create(new Coordinator())],
    ['a proxy of a coordinator', new Proxy(new Coordinator(), {})],
    ['a copy of its properties', Object.assign({}, new Coordinator())],
    ['the class', Coordinator],
    ['the prototype', Coordinator.prototype],
    ['an object of another addon', addon.decoy()],
    ["another addon's object with our prototype", inherit(addon.decoy())],
    ['a bare pointer', addon.external()],
    ['a hostile proxy', hostile()],
    ['a revoked proxy of a coordinator', revoked(new Coordinator())],
    ['a promise', Promise.resolve()],
    ['a shared buffer', new SharedArrayBuffer(8)],
    ['the global object', globalThis],
  ])('refuses %s', (_, value) => {
    expect(addon.status(value)).toBe(INVALID_HANDLE);
  });

  it('runs no JavaScript of the value', () => {
    const touched: PropertyKey[] = [];
    const handler = new Proxy(
      {},
      {
        get(_, trap) {
          touched.push(trap);
          return undefined;
        },
      },
    );
    addon.status(new Proxy({}, handler));
    addon.status({
      get type() {
        touched.push('type');
        return 'allstop.Coordinator';
      },
    });
    expect(touched).toEqual([]);
  });

  it('the error for a JavaScript caller is a TypeError with our code', () => {
    for (const { value } of oddValues()) {
      expect(() => addon.start(value as never, 'gate', 'never')).toThrow(
        expect.objectContaining({
          name: 'TypeError',
          code: 'ERR_ALLSTOP_INVALID_HANDLE',
          message:
            'The argument must be an allstop Coordinator or its signal; of a handle, pass ' +
            'Coordinator.attach(handle)',
        }),
      );
    }
  });
});

function inherit(object: object): object {
  return Object.setPrototypeOf(object, Coordinator.prototype) as object;
}
