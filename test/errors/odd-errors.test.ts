// Any value can be thrown. Only undefined and null, passed to requestStop(), mean that there is no
// error. Every other value is an error, arrives as a copy or as a marker, and can be reported.

import { Coordinator } from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostile, oddValues, revoked, throwing } from '../support/odd-values.ts';
import { OtherThread } from '../support/other-thread.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

const MARKER = /^\[allstop: not carried: .+\]$/;

/** Errors of every kind. */
type AnyError = any;

async function thrownBy(run: () => unknown): Promise<{ value: unknown } | undefined> {
  try {
    await run();
    return undefined;
  } catch (value) {
    return { value };
  }
}

describe('no error', () => {
  it.each([[[]], [[undefined]], [[null]]])('requestStop(...%o) is a plain stop', async (args) => {
    const coord = new Coordinator();
    coord.requestStop(...args);
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressed: [] });
    expect(coord.stopRecord).not.toHaveProperty('error');
    expect(coord.signal.reason).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    coord.raiseRequestedException();
    await coord.join();
  });
});

describe.each<[string, unknown]>([
  ['undefined', undefined],
  ['null', null],
  ['0', 0],
  ['-0', -0],
  ['NaN', Number.NaN],
  ['an empty string', ''],
  ['false', false],
  ['a bigint', 0n],
  ['a symbol', Symbol('thrown')],
  ['a function', () => {}],
  ['a plain object', { code: 5 }],
  ['an array', []],
  ['a Date', new Date(0)],
  ['a revoked proxy', revoked()],
  ['a hostile proxy', hostile()],
])('%s', (_, value) => {
  it('is an error when it is thrown', async () => {
    for (const report of [
      (coord: Coordinator) =>
        coord.stopOnException((): void => {
          throw value;
        }),
      (coord: Coordinator) => void coord.stopOnException(() => Promise.reject(value)),
      (coord: Coordinator) =>
        void coord.start(() => {
          throw value;
        }),
      (coord: Coordinator) => coord.registerThread(Promise.reject(value)),
      (coord: Coordinator) => coord.registerThread({ join: () => Promise.reject(value) }),
    ]) {
      const coord = new Coordinator();
      report(coord);
      await coord.waitForStop();
      expect(coord.stopRecord?.kind).toBe('error');
      expect(coord.stopRecord).toHaveProperty('error');
      expect(Object.is(coord.stopRecord?.error, value)).toBe(true);
      const joined = await thrownBy(() => coord.join());
      expect(joined !== undefined && Object.is(joined.value, value)).toBe(true);
      const raised = await thrownBy(() => coord.raiseRequestedException());
      expect(raised !== undefined && Object.is(raised.value, value)).toBe(true);
      expect(coord.explain().toString()).toContain('The error: ');
    }
  });

  it('is an error for run(), which rejects with it', async () => {
    const thrown = await thrownBy(() =>
      Coordinator.run(() => {
        throw value;
      }),
    );
    expect(thrown !== undefined && Object.is(thrown.value, value)).toBe(true);
  });
});

describe('other threads', () => {
  it.each([0, -0, Number.NaN, '', 'text', false, true, 0n, 2n ** 70n])(
    'get the primitive %s as it is',
    async (value) => {
      const coord = new Coordinator();
      coord.requestStop(value);
      const look = (error: AnyError): unknown => [error, Object.is(error, -0)];
      expect(await there.see(coord, look)).toEqual([value, Object.is(value, -0)]);
      const back = new Coordinator();
      await there.pass(coord, back);
      expect(back.stopRecord?.error).toBe(value);
    },
  );

  it.each([undefined, null])('get %s, when it was thrown', async (value) => {
    const coord = new Coordinator();
    await coord.start(() => {
      throw value;
    });
    const look = (_: AnyError, { coord: attached }: { coord: Coordinator }): unknown => [
      attached.stopRecord?.kind,
      attached.stopRecord && 'error' in attached.stopRecord,
      attached.stopRecord?.error,
    ];
    expect(await there.see(coord, look)).toEqual(['error', true, value]);
  });

  it('get plain objects, collections and instances as structured clones', async () => {
    class Problem {
      code = 5;
      readonly tags = new Set(['a']);
    }
    const values = [{ code: 5, list: [1n] }, [1, [2]], new Map([[1, { a: 2 }]]), new Problem()];
    for (const value of values) {
      const coord = new Coordinator();
      coord.requestStop(value);
      expect(coord.stopRecord?.error).toBe(value);
      expect(await there.see(coord, (error) => error)).toEqual(structuredClone(value));
      const back = new Coordinator();
      await there.pass(coord, back);
      expect(back.stopRecord?.error).toBe(value);
    }
  });

  it.each<[string, unknown]>([
    ['a symbol', Symbol('thrown')],
    ['a function', () => {}],
    ['a promise', Promise.resolve()],
    ['a revoked proxy', revoked()],
    ['a hostile proxy', hostile()],
    ['a revoked error', revoked(new Error('gone'))],
  ])('get a marker for %s, a string that can go anywhere', async (_, value) => {
    const coord = new Coordinator();
    coord.requestStop(value);
    const marker = await there.see(coord, (error) => error);
    expect(marker).toMatch(MARKER);
    expect(Object.is(coord.stopRecord?.error, value)).toBe(true);
    const back = new Coordinator();
    await there.pass(coord, back);
    expect(back.stopRecord?.error).toBe(marker); // a string has no id: the copy is found again by its value
  });

  it('can throw all of them at us', async () => {
    for (const [make, expected] of [
      [() => 0, 0],
      [() => '', ''],
      [() => Symbol('s'), expect.stringMatching(MARKER)],
      [() => ({ code: 5n }), { code: 5n }],
      [() => new Proxy(new Error('behind a proxy'), {}), new Error('behind a proxy')],
    ] as [() => unknown, unknown][]) {
      const coord = new Coordinator();
      await there.report(coord, make);
      expect(coord.stopRecord?.error).toEqual(expected);
      const joined = await thrownBy(() => coord.join());
      expect(joined?.value).toBe(coord.stopRecord?.error);
    }
  });
});

describe('errors that do not want to be looked at', () => {
  const look = (error: AnyError): unknown => ({
    error: error instanceof Error,
    class: error.constructor.name,
    name: error.name,
    message: error.message,
    stack: error.stack,
    other: error.other,
  });
  const spoiled = (key: string): Error =>
    Object.defineProperties(
      Object.assign(new TypeError('the message'), { other: 5, stack: 'the stack' }),
      Object.getOwnPropertyDescriptors(throwing(key)) as PropertyDescriptorMap,
    );

  it.each(['name', 'message', 'stack', 'cause', 'code'])(
    'one whose %s throws arrives with a marker there, and the rest',
    async (key) => {
      const coord = new Coordinator();
      coord.requestStop(spoiled(key));
      const marker = `[allstop: not carried: property ${key} (the getter of ${key})]`;
      const whole = { name: 'TypeError', message: 'the message', stack: 'the stack' };
      expect(await there.see(coord, look)).toEqual({
        error: true,
        class: 'TypeError',
        other: 5,
        ...whole,
        ...(key in whole ? { [key]: marker } : {}),
      });
      expect(coord.explain().toString()).toContain('The error: ');
    },
  );

  it('one whose constructor throws is an Error', async () => {
    class Spoiled extends RangeError {
      other = 5;
    }
    Object.defineProperties(
      Spoiled.prototype,
      Object.getOwnPropertyDescriptors(throwing('constructor')) as PropertyDescriptorMap,
    );
    const coord = new Coordinator();
    coord.requestStop(new Spoiled('the message'));
    expect(await there.see(coord, look)).toMatchObject({ class: 'RangeError', other: 5 });
  });

  it('frozen, sealed and bare ones are errors like others', async () => {
    for (const [make, expected] of [
      [(error) => Object.freeze(error), 'TypeError'],
      [(error) => Object.seal(error), 'TypeError'],
      [(error) => Object.setPrototypeOf(error, null), 'Error'],
      [(error) => new Proxy(error, {}), 'TypeError'],
    ] as [(error: Error) => Error, string][]) {
      const error = make(Object.assign(new TypeError('the message'), { other: 5 }));
      const coord = new Coordinator();
      coord.requestStop(error);
      expect(coord.stopRecord?.error).toBe(error);
      expect(await there.see(coord, look)).toMatchObject({
        error: true,
        class: expected,
        message: 'the message',
        other: 5,
      });
      const back = new Coordinator();
      await there.pass(coord, back);
      expect(back.stopRecord?.error).toBe(error);
    }
  });

  it('one without a stack, and one with an odd prototype', async () => {
    const bare = new Error('no stack');
    delete bare.stack;
    const odd = Object.setPrototypeOf(new Error('odd'), { constructor: 5, name: 5 });
    for (const error of [bare, odd]) {
      const coord = new Coordinator();
      coord.requestStop(error);
      expect(await there.see(coord, look)).toMatchObject({
        error: true,
        message: error.message,
        name: 'Error',
      });
    }
  });

  it('every odd value can be reported, and be read everywhere', async () => {
    for (const { label, value } of oddValues()) {
      if (value === undefined || value === null) continue;
      const coord = new Coordinator();
      coord.requestStop(value);
      coord.requestStop(Object.assign(new Error(label), { value, cause: value }));
      expect(coord.stopRecord?.suppressedCount).toBe(1);
      expect(await there.see(coord, (_, { coord: attached }) => attached.joined)).toBe(false);
      const seen = await there.see(coord, (_, { coord: attached }) =>
        attached.explain().toString().includes('The error: '),
      );
      expect(seen).toBe(true);
    }
  });
});

describe('setters on Object.prototype', () => {
  it('are not called, and change no record', () => {
    const names = [
      'error',
      'id',
      'kind',
      'generation',
      'requester',
      'via',
      'stack',
      'name',
      'code',
    ];
    const coord = new Coordinator({ name: 'guarded' });
    const called: string[] = [];
    for (const name of names) {
      // oxlint-disable-next-line no-extend-native -- the test is about such a program
      Object.defineProperty(Object.prototype, name, {
        configurable: true,
        get: () => undefined,
        set: () => {
          called.push(name);
        },
      });
    }
    // No expectation before they are gone: vitest makes objects with such fields.
    let record: unknown;
    let text: string;
    let reason: unknown;
    try {
      coord.requestStop(new TypeError('the cause'));
      record = coord.stopRecord;
      reason = coord.signal.reason;
      text = coord.explain().toString();
    } finally {
      for (const name of names) Reflect.deleteProperty(Object.prototype, name);
    }
    expect(record).toMatchObject({
      kind: 'error',
      error: { name: 'TypeError', message: 'the cause' },
      requester: { via: 'call', threadName: 'main', stack: expect.any(String) },
    });
    expect(reason).toBe((record as { error: unknown }).error);
    expect(text).toContain('TypeError: the cause');
    expect(called).toEqual([]);
  });
});
