/**
 * Wrong arguments for all functions of the API, and the state that a refused call must not change.
 */

import type { Coordinator } from 'allstop';

export type Kind =
  | 'undefined'
  | 'null'
  | 'boolean'
  | 'number'
  | 'negative' // and NaN: numbers that are not durations
  | 'string'
  | 'bigint'
  | 'symbol'
  | 'function'
  | 'array'
  | 'object'
  | 'revoked';

export type OddValue = { label: string; kind: Kind; value: unknown };

export function revoked(target: object = {}): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** An object with this property, for example a thenable. */
export function having(key: string, value: unknown): object {
  return { [key]: value };
}

/** An object whose property of this name throws when it is read. */
export function throwing(key: PropertyKey): object {
  return Object.defineProperty({}, key, {
    enumerable: true,
    get() {
      throw new Error(`the getter of ${String(key)}`);
    },
  });
}

/** A proxy on which every operation throws. */
export function hostile(): object {
  const trap = (): never => {
    throw new Error('a trap of the proxy');
  };
  return new Proxy(
    {},
    {
      get: trap,
      has: trap,
      ownKeys: trap,
      getPrototypeOf: trap,
      getOwnPropertyDescriptor: trap,
      defineProperty: trap,
      set: trap,
    },
  );
}

/** New objects at each call. None is a thread, a signal, a handle or an event emitter. */
export function oddValues(): OddValue[] {
  const of = (kind: Kind, values: Record<string, unknown>): OddValue[] =>
    Object.entries(values).map(([label, value]) => ({ label, kind, value }));
  return [
    ...of('undefined', { undefined }),
    ...of('null', { null: null }),
    ...of('boolean', { true: true, false: false }),
    ...of('number', { '0': 0, '-0': -0, '1.5': 1.5, Infinity: Number.POSITIVE_INFINITY }),
    ...of('negative', { '-1': -1, NaN: Number.NaN, '-Infinity': Number.NEGATIVE_INFINITY }),
    ...of('string', { "''": '', "'5'": '5', "'__proto__'": '__proto__' }),
    ...of('bigint', { '5n': 5n }),
    ...of('symbol', { symbol: Symbol('odd') }),
    ...of('function', {
      'a function': () => {},
      'a class': class Odd {
        field = 1;
      },
      'an async function': async () => {},
    }),
    ...of('array', { '[]': [], '[1, null]': [1, null] }),
    ...of('object', {
      '{}': {},
      'Object.create(null)': Object.create(null),
      'a Date': new Date(0),
      'a Map': new Map([[1, 2]]),
      'a Uint8Array': new Uint8Array(2),
      'a Number': Object(5),
      'a throwing then': throwing('then'),
      'a throwing join': throwing('join'),
      'a throwing name': throwing('name'),
      'a throwing constructor': throwing('constructor'),
      'a throwing toString': throwing('toString'),
      'a throwing Symbol.iterator': throwing(Symbol.iterator),
      'a throwing Symbol.toStringTag': throwing(Symbol.toStringTag),
      'a then that is no function': having('then', 5),
      'a join that is no function': { join: 5 },
      'a hostile proxy': hostile(),
    }),
    ...of('revoked', { 'a revoked proxy': revoked(), 'a revoked array': revoked([]) }),
  ];
}

/** The whole visible state of a coordinator. */
export function snapshot(coord: Coordinator): object {
  const { stopped, record, threads, recentlyEnded, links } = coord.explain();
  return {
    shouldStop: coord.shouldStop(),
    aborted: coord.signal.aborted,
    joined: coord.joined,
    stopRecord: coord.stopRecord,
    threads: coord.threads,
    explained: { stopped, record, threads, recentlyEnded, links },
  };
}
