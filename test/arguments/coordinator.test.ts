// A refused call throws the error that Node would throw, names the argument, and changes nothing.
// The tests pass every odd value as every parameter, in every state of a coordinator.

import { inspect } from 'node:util';
import { AllstopError, BoundedQueue, Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { hostile, throwing } from '../support/odd-values.ts';
import {
  coordinatorThatIs,
  misbehaviour,
  type Parameter,
  refusal,
  type State,
} from '../support/refusals.ts';

const body = (): void => {};
const url = new URL('data:text/javascript,');
const never = { name: 'never', join: () => new Promise<void>(() => {}) };
const { signal } = new AbortController();

type Wrong = never;
const wrong = (value: unknown): Wrong => value as Wrong;

/** Parameters by type: `except` has the kinds of values that are accepted. */
const DURATION = { except: ['undefined', 'number'] } satisfies Partial<Parameter>;
const STRING = { except: ['undefined', 'string'], objects: true } satisfies Partial<Parameter>;
const BAG = { except: ['undefined'] } satisfies Partial<Parameter>;
const SIGNAL = { except: ['undefined'], objects: true } satisfies Partial<Parameter>;
const FUNCTION = { except: ['function'], objects: true } satisfies Partial<Parameter>;

const parameters: Parameter[] = [
  // Options.
  ...(
    [
      ['new Coordinator(options)', (_, v) => new Coordinator(wrong(v))],
      ['child(options)', (coord, v) => coord.child(wrong(v))],
      ['run(body, options)', (_, v) => Coordinator.run(body, wrong(v)), true],
      ['waitForStop(0, options)', (coord, v) => coord.waitForStop(0, wrong(v)), true],
      ['registerThread(thread, options)', (coord, v) => coord.registerThread(never, wrong(v))],
      ['start(fn, options)', (coord, v) => coord.start(body, wrong(v))],
      ['onStop(fn, options)', (coord, v) => coord.onStop(body, wrong(v))],
      ['join([thread], options)', (coord, v) => coord.join([never], wrong(v)), true],
      ['stopOnClose(process, options)', (coord, v) => coord.stopOnClose(process, wrong(v))],
      ['spawn(url, options)', (coord, v) => coord.spawn(url, wrong(v))],
    ] as [string, Parameter['pass'], boolean?][]
  ).map(([call, pass, rejects = false]) => ({ call, pass, rejects, argument: 'options', ...BAG })),
  // A single argument of join() is the threads if it is iterable, else the options.
  {
    call: 'join(options)',
    argument: 'options',
    pass: (coord, v) => coord.join(wrong(v)),
    rejects: true,
    except: ['undefined', 'array', 'string'],
  },
  // Names.
  ...(
    [
      ['new Coordinator({ name })', (_, name) => new Coordinator({ name: wrong(name) })],
      ['child({ name })', (coord, name) => coord.child({ name: wrong(name) })],
      ['run(body, { name })', (_, name) => Coordinator.run(body, { name: wrong(name) }), true],
      [
        'registerThread(thread, { name })',
        (coord, name) => coord.registerThread(never, { name: wrong(name) }),
      ],
      ['start(fn, { name })', (coord, name) => coord.start(body, { name: wrong(name) })],
      ['onStop(fn, { name })', (coord, name) => coord.onStop(body, { name: wrong(name) })],
    ] as [string, Parameter['pass'], boolean?][]
  ).map(([call, pass, rejects = false]) => ({
    call,
    pass,
    rejects,
    argument: 'options.name',
    ...STRING,
  })),
  // Durations.
  ...(
    [
      ['new Coordinator()', (_, ms) => new Coordinator({ stopGracePeriodMs: wrong(ms) })],
      ['child()', (coord, ms) => coord.child({ stopGracePeriodMs: wrong(ms) })],
      ['join()', (coord, ms) => coord.join({ stopGracePeriodMs: wrong(ms) }), true],
      [
        'join([thread])',
        (coord, ms) => coord.join([never], { stopGracePeriodMs: wrong(ms) }),
        true,
      ],
    ] as [string, Parameter['pass'], boolean?][]
  ).map(([call, pass, rejects = false]) => ({
    call: `${call} { stopGracePeriodMs }`,
    pass,
    rejects,
    argument: 'options.stopGracePeriodMs',
    ...DURATION,
    objects: true,
  })),
  {
    call: 'waitForStop(timeoutMs)',
    argument: 'timeoutMs',
    pass: (coord, ms) => coord.waitForStop(wrong(ms)),
    rejects: true,
    ...DURATION,
    objects: true,
  },
  {
    call: 'waitForStopSync(timeoutMs)',
    argument: 'timeoutMs',
    pass: (coord, ms) => coord.waitForStopSync(wrong(ms)),
    ...DURATION,
    objects: true,
  },
  {
    call: 'stopAfter(ms)',
    argument: 'ms',
    pass: (coord, ms) => coord.stopAfter(wrong(ms)),
    except: ['number'],
    objects: true,
  },
  // Signals.
  {
    call: 'waitForStop(0, { signal })',
    argument: 'options.signal',
    pass: (coord, v) => coord.waitForStop(0, { signal: wrong(v) }),
    rejects: true,
    ...SIGNAL,
  },
  {
    call: 'join([thread], { signal })',
    argument: 'options.signal',
    pass: (coord, v) => coord.join([never], { signal: wrong(v) }),
    rejects: true,
    ...SIGNAL,
  },
  {
    call: 'stopOnAbort(signal)',
    argument: 'signal',
    pass: (coord, v) => coord.stopOnAbort(wrong(v)),
    objects: true,
  },
  // Other options.
  {
    call: 'join([thread], { ignoreLiveThreads })',
    argument: 'options.ignoreLiveThreads',
    pass: (coord, v) => coord.join([never], { ignoreLiveThreads: wrong(v) }),
    rejects: true,
    except: ['undefined', 'boolean'],
    objects: true,
  },
  {
    call: 'new Coordinator({ cleanStopErrors })',
    argument: 'options.cleanStopErrors',
    pass: (_, v) => new Coordinator({ cleanStopErrors: wrong(v) }),
    except: ['undefined', 'array', 'object'],
  },
  {
    call: 'new Coordinator({ cleanStopErrors: [type] })',
    argument: 'options.cleanStopErrors[]',
    pass: (_, v) => new Coordinator({ cleanStopErrors: [wrong(v)] }),
    except: ['string'],
    objects: true,
  },
  {
    call: 'child({ cleanStopErrors: [type] })',
    argument: 'options.cleanStopErrors[]',
    pass: (coord, v) => coord.child({ cleanStopErrors: new Set([RangeError, wrong(v)]) }),
    except: ['string'],
    objects: true,
  },
  // Functions.
  {
    call: 'run(body)',
    argument: 'body',
    pass: (_, v) => Coordinator.run(wrong(v)),
    rejects: true,
    ...FUNCTION,
  },
  {
    call: 'stopOnException(fn)',
    argument: 'fn',
    pass: (coord, v) => coord.stopOnException(wrong(v)),
    ...FUNCTION,
  },
  {
    // start() throws at once: its promise never rejects.
    call: 'start(fn)',
    argument: 'fn',
    pass: (coord, v) => coord.start(wrong(v)),
    ...FUNCTION,
  },
];

describe.each<State>(['running', 'stopped', 'joined'])('a coordinator that is %s', (state) => {
  it.each(parameters)('$call refuses a wrong $argument', async (parameter) => {
    expect(await misbehaviour(await coordinatorThatIs(state), parameter)).toEqual([]);
  });
});

describe('an object that throws when it is read', () => {
  it.each([
    ['new Coordinator()', 'name', (v) => new Coordinator(wrong(v))],
    ['new Coordinator()', 'cleanStopErrors', (v) => new Coordinator(wrong(v))],
    ['child()', 'stopGracePeriodMs', (v, coord) => coord.child(wrong(v))],
    ['run()', 'stopOnSignals', (v) => Coordinator.run(body, wrong(v))],
    ['waitForStop()', 'signal', (v, coord) => coord.waitForStop(0, wrong(v))],
    ['registerThread()', 'name', (v, coord) => coord.registerThread(never, wrong(v))],
    ['start()', 'name', (v, coord) => coord.start(body, wrong(v))],
    ['join()', 'ignoreLiveThreads', (v, coord) => coord.join([never], wrong(v))],
    ['stopOnClose()', 'as', (v, coord) => coord.stopOnClose(process, wrong(v))],
    ['spawn()', 'eval', (v, coord) => coord.spawn(url, wrong(v))],
  ] as [string, string, (value: unknown, coord: Coordinator) => unknown][])(
    '%s lets the error of the getter of %s through, and changes nothing',
    async (_, key, pass) => {
      const coord = new Coordinator();
      const { error } = await refusal(coord, () => pass(throwing(key), coord));
      expect(error.message).toBe(`the getter of ${key}`);
      const trapped = await refusal(coord, () => pass(hostile(), coord));
      expect(trapped.error.message).toBe('a trap of the proxy');
    },
  );

  it('an iterable of clean-stop errors that throws half-way is no harm', () => {
    const half = function* (): Generator<never> {
      yield 'RangeError' as Wrong;
      throw new Error('half-way');
    };
    expect(() => new Coordinator({ cleanStopErrors: half() })).toThrow('half-way');
  });

  it.each([
    ['a key that is no function', { [Symbol.iterator]: 5 }],
    ['a key without a value', { [Symbol.iterator]: undefined }],
  ])('an iterable with %s is refused', (_, value) => {
    expect(() => new Coordinator({ cleanStopErrors: wrong(value) })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
  });

  it('a class has to have a name that is a string', () => {
    class Nameless extends Error {
      static override readonly name = wrong(5);
    }
    expect(() => new Coordinator({ cleanStopErrors: [Nameless] })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
    expect(() => new Coordinator({ cleanStopErrors: [class extends Error {}] })).toThrow(
      /"options.cleanStopErrors\[\]" .* a named error class/,
    );
  });
});

describe('a method of another object', () => {
  const own = Object.getOwnPropertyDescriptors(Coordinator.prototype);
  // util.inspect shows what only looks like a coordinator as Node does, and throws nothing.
  const notRefused = new Set<PropertyKey>(['constructor', inspect.custom]);
  const names = Reflect.ownKeys(own).filter((name) => !notRefused.has(name));
  const promising = new Set<PropertyKey>(['waitForStop', 'join', 'diagnose', Symbol.asyncDispose]);
  const right: Record<string, unknown[]> = {
    stopAfter: [1000],
    stopOnException: [() => Promise.reject(new Error('fn was called'))],
    registerThread: [never],
    start: [body],
    spawn: [url],
    stopOnAbort: [signal],
    stopOnClose: [process],
  };

  it.each(names.map((name) => [String(name), name] as const))(
    '%s is refused for every other this',
    async (_, name) => {
      const { get, value } = own[name as keyof typeof own] as PropertyDescriptor;
      const method = (get ?? value) as (this: unknown, ...args: unknown[]) => unknown;
      const others = [
        undefined,
        null,
        5,
        {},
        Coordinator.prototype,
        Object.create(new Coordinator()),
        new Proxy(new Coordinator(), {}),
        hostile(),
      ];
      for (const other of others) {
        const coord = new Coordinator();
        const { error, rejected } = await refusal(coord, () =>
          Reflect.apply(method, other, right[name as string] ?? []),
        );
        expect(rejected).toBe(promising.has(name));
        if (name !== 'requestStop') expect(error).toBeInstanceOf(TypeError);
        expect(error.message).not.toBe('');
      }
      expect(process.listenerCount('close')).toBe(0);
    },
  );

  it('the constructor needs new', () => {
    expect(() => Reflect.apply(Coordinator, undefined, [])).toThrow(TypeError);
  });

  it('the static functions need no this', async () => {
    const { attach, current, run } = Coordinator;
    const coord = new Coordinator();
    expect(attach(coord.handle)).toBe(coord);
    expect(current()).toBeUndefined();
    expect(await run(() => 5)).toBe(5);
  });

  it('what is read-only stays so', () => {
    const coord = new Coordinator({ name: 'a' });
    for (const key of ['name', 'handle', 'signal', 'joined', 'threads', 'stopRecord']) {
      expect(() => Object.assign(coord, { [key]: 5 })).toThrow(TypeError);
    }
    coord.threads.push(wrong({ name: 'forged' }));
    expect(coord.threads).toEqual([]);
  });
});

describe('a handle that is not valid', () => {
  const real = new Coordinator().handle;
  const refusedWith = async (handle: unknown): Promise<string> => {
    const { error } = await refusal(new Coordinator(), () => Coordinator.attach(wrong(handle)));
    expect(error.message).toMatch(/handle/);
    return `${error.code}`;
  };

  it.each([undefined, null, 5, 5n, 'x', Symbol('x'), true, () => {}])(
    'of a wrong type is a TypeError: %s',
    async (value) => {
      expect(await refusedWith(value)).toBe('ERR_INVALID_ARG_TYPE');
    },
  );

  it.each([
    ['an id of the future', { id: '999999999' }],
    ['an id beyond 2^53', { id: '99999999999999999999' }],
    ['an id of zero', { id: '0' }],
    ['a negative id', { id: '-1' }],
    ['a fraction', { id: '1.5' }],
    ['an exponent', { id: '1e3' }],
    ['white space', { id: ' 1' }],
    ['a newline', { id: '1\n' }],
    ['a number', { id: Number(real.id) }],
    ['a bigint', { id: BigInt(real.id) }],
    ['an array', { id: [real.id] }],
    ['NaN', { id: Number.NaN }],
    ['__proto__', { id: '__proto__' }],
    ['no id', { id: undefined }],
    ['another world', { world: 'another-world' }],
    ['a world that is no string', { world: 5 }],
    ['no world', { world: undefined }],
    ['another type', { type: 'allstop.BoundedQueue' }],
    ['no type', { type: undefined }],
  ])('with %s is an invalid one', async (_, forged) => {
    expect(await refusedWith({ ...real, ...forged })).toBe('ERR_ALLSTOP_INVALID_HANDLE');
  });

  it.each([
    ['{}', {}],
    ['an array', []],
    ['a coordinator itself', new Coordinator()],
    ['a throwing id', throwing('id')],
    ['a hostile proxy', hostile()],
    ['a null prototype', Object.create(null)],
  ])('%s is an invalid one', async (_, value) => {
    expect(await refusedWith(value)).toBe('ERR_ALLSTOP_INVALID_HANDLE');
  });

  it.each([
    ['Coordinator', () => Coordinator.attach(wrong(new Coordinator()))],
    ['BoundedQueue', () => BoundedQueue.attach(wrong(new BoundedQueue({ capacity: 1 })))],
  ])('a %s in place of its handle is told so', (kind, attach) => {
    expect(attach).toThrow(
      `The handle is not the handle of a ${kind}: pass the \`handle\` of the object, not the object`,
    );
  });

  it('is stale once its coordinator is disposed of', async () => {
    const coord = new Coordinator();
    const { handle } = coord;
    expect(Coordinator.attach(handle)).toBe(coord);
    await coord[Symbol.asyncDispose]();
    expect(await refusedWith(handle)).toBe('ERR_ALLSTOP_INVALID_HANDLE');
  });

  it('is an error of ours, and a copy of a right one is right', () => {
    expect(() => Coordinator.attach(wrong({}))).toThrow(AllstopError);
    const coord = new Coordinator();
    expect(Coordinator.attach(structuredClone(coord.handle))).toBe(coord);
  });
});
