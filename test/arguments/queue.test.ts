// A queue refuses wrong arguments with the error that Node would throw, and changes nothing.

import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { BoundedQueue, Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import {
  having,
  hostile,
  type Kind,
  type OddValue,
  oddValues,
  revoked,
  throwing,
} from '../support/odd-values.ts';
import { addon } from '../support/test-addon.ts';

const WRONG_TYPE = 'TypeError ERR_INVALID_ARG_TYPE';
const NONE_OF_THEM = 'TypeError ERR_INVALID_ARG_VALUE';
const OUT_OF_RANGE = 'RangeError ERR_OUT_OF_RANGE';
const INVALID_HANDLE = 'InvalidHandleError ERR_ALLSTOP_INVALID_HANDLE';

const wrong = (value: unknown): never => value as never;

type Queue = BoundedQueue;
type Parameter = {
  call: string;
  argument: string;
  pass: (queue: Queue, value: unknown) => unknown;
  rejects?: boolean;
  /** The kinds of values that are accepted. */
  except?: Kind[];
  /** Set if the parameter is an instance of a class: plain objects are refused. */
  objects?: boolean;
  /** Set if the parameter is one of a few strings: another is a wrong value. */
  oneOf?: boolean;
  /** Numbers that are out of range. */
  badNumbers?: number[];
};

const { signal } = new AbortController();
const bag = { argument: 'options', except: ['undefined', 'object'] } satisfies Partial<Parameter>;
const duration = {
  objects: true,
  except: ['undefined', 'number'],
  badNumbers: [-1, Number.NaN, Number.NEGATIVE_INFINITY],
} satisfies Partial<Parameter>;
const count = {
  objects: true,
  except: ['number'],
  badNumbers: [0, -1, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53],
} satisfies Partial<Parameter>;

const parameters: Parameter[] = [
  { call: 'new BoundedQueue(options)', pass: (_, v) => new BoundedQueue(wrong(v)), ...bag },
  { call: 'close(options)', pass: (queue, v) => queue.close(wrong(v)), ...bag },
  {
    call: 'enqueue(1, options)',
    pass: (queue, v) => queue.enqueue(1, wrong(v)),
    rejects: true,
    ...bag,
  },
  { call: 'dequeue(options)', pass: (q, v) => q.dequeue(wrong(v)), rejects: true, ...bag },
  {
    call: 'dequeueMany(1, options)',
    pass: (queue, v) => queue.dequeueMany(1, wrong(v)),
    rejects: true,
    ...bag,
  },
  {
    call: 'new BoundedQueue({ capacity })',
    argument: 'options.capacity',
    pass: (_, v) => new BoundedQueue({ capacity: wrong(v) }),
    ...count,
  },
  {
    call: 'new BoundedQueue({ name })',
    argument: 'options.name',
    pass: (_, v) => new BoundedQueue({ capacity: 1, name: wrong(v) }),
    objects: true,
    except: ['undefined', 'string'],
  },
  {
    call: 'new BoundedQueue({ codec })',
    argument: 'options.codec',
    pass: (_, v) => new BoundedQueue({ capacity: 1, codec: wrong(v) }),
    oneOf: true,
    objects: true,
    except: ['undefined'],
  },
  {
    call: 'new BoundedQueue({ coordinator })',
    argument: 'options.coordinator',
    pass: (_, v) => new BoundedQueue({ capacity: 1, coordinator: wrong(v) }),
    objects: true,
    except: ['undefined'],
  },
  {
    call: 'close({ cancelPendingEnqueues })',
    argument: 'options.cancelPendingEnqueues',
    pass: (queue, v) => queue.close({ cancelPendingEnqueues: wrong(v) }),
    objects: true,
    except: ['undefined', 'boolean'],
  },
  {
    call: 'dequeueMany(max)',
    argument: 'max',
    pass: (queue, v) => queue.dequeueMany(wrong(v)),
    rejects: true,
    ...count,
  },
  {
    call: 'dequeueMany(1, { min })',
    argument: 'options.min',
    pass: (queue, v) => queue.dequeueMany(1, { min: wrong(v) }),
    rejects: true,
    ...count,
    except: ['undefined', 'number'],
  },
  {
    call: 'enqueueSync(1, timeoutMs)',
    argument: 'timeoutMs',
    pass: (queue, v) => queue.enqueueSync(1, wrong(v)),
    ...duration,
  },
  {
    call: 'dequeueSync(timeoutMs)',
    argument: 'timeoutMs',
    pass: (queue, v) => queue.dequeueSync(wrong(v)),
    ...duration,
  },
  ...(
    [
      ['enqueue', (queue, options) => queue.enqueue(1, wrong(options))],
      ['dequeue', (queue, options) => queue.dequeue(wrong(options))],
      ['dequeueMany', (queue, options) => queue.dequeueMany(1, wrong(options))],
    ] as [string, Parameter['pass']][]
  ).flatMap(([call, pass]) => [
    {
      call: `${call}({ timeoutMs })`,
      argument: 'options.timeoutMs',
      pass: (queue: Queue, timeoutMs: unknown) => pass(queue, { timeoutMs }),
      rejects: true,
      ...duration,
    },
    {
      call: `${call}({ signal })`,
      argument: 'options.signal',
      pass: (queue: Queue, v: unknown) => pass(queue, { signal: v }),
      rejects: true,
      objects: true,
      except: ['undefined' as Kind],
    },
  ]),
];

function isRight({ kind, value }: OddValue, { except = [], objects = false }: Parameter): boolean {
  if (kind === 'object') return !objects;
  if (kind === 'negative') return except.includes('number'); // see badNumbers
  if (kind === 'string' && value === '') return except.includes('string');
  return except.includes(kind);
}

/** How a call was refused. */
async function refusal(call: () => unknown): Promise<{ error: unknown; rejected: boolean }> {
  let rejected = false;
  try {
    const result = call();
    rejected = true;
    await result;
  } catch (error) {
    return { error, rejected };
  }
  throw new Error('It was accepted');
}

function summary(error: unknown): string {
  const { constructor, code } = error as Error & { code?: string };
  return `${constructor.name} ${code}`;
}

describe.each(['open', 'closed'])('a queue that is %s', (state) => {
  it.each(parameters)('refuses odd values for $call', async (parameter) => {
    const queue: Queue = new BoundedQueue({ capacity: 3 });
    queue.enqueueSync('first');
    if (state === 'closed') queue.close();
    const odd = oddValues()
      .filter((value) => !isRight(value, parameter))
      .map((value) => {
        const isNoneOf = value.kind === 'string' && parameter.oneOf === true;
        return { ...value, wanted: isNoneOf ? NONE_OF_THEM : WRONG_TYPE };
      });
    for (const value of parameter.badNumbers ?? []) {
      odd.push({ label: inspect(value), kind: 'number', value, wanted: OUT_OF_RANGE });
    }
    expect(odd.length).toBeGreaterThan(10);
    for (const { label, value, wanted } of odd) {
      const { error, rejected } = await refusal(() => parameter.pass(queue, value));
      const got = `${label}: ${summary(error)}, ${rejected ? 'rejected' : 'thrown'}`;
      expect(got).toBe(`${label}: ${wanted}, ${parameter.rejects ? 'rejected' : 'thrown'}`);
      expect((error as Error).message).toContain(`"${parameter.argument}"`);
    }
    expect(queue).toMatchObject({ size: 1, closed: state === 'closed' });
    expect(queue.tryDequeue()).toBe('first');
  });
});

describe('a new queue', () => {
  it.each([
    [undefined, WRONG_TYPE],
    ['1', WRONG_TYPE],
    [1n, WRONG_TYPE],
    [0, OUT_OF_RANGE],
    [-3, OUT_OF_RANGE],
    [2.5, OUT_OF_RANGE],
    [Number.NaN, OUT_OF_RANGE],
    [Number.POSITIVE_INFINITY, OUT_OF_RANGE],
  ])('cannot have the capacity %s', async (capacity, wanted) => {
    const { error } = await refusal(() => new BoundedQueue({ capacity: wrong(capacity) }));
    expect(summary(error)).toBe(wanted);
  });

  it.each(['json', 'Bytes', 'structured ', '__proto__', 'length'])(
    'cannot have the codec %j',
    async (codec) => {
      const { error } = await refusal(() => new BoundedQueue({ capacity: 1, codec: wrong(codec) }));
      expect(summary(error)).toBe(NONE_OF_THEM);
      expect((error as Error).message).toContain("'structured', 'bytes'");
    },
  );

  it.each([
    ['what inherits from one', Object.create(new Coordinator())],
    ['a proxy of one', new Proxy(new Coordinator(), {})],
    ['a revoked proxy', revoked(new Coordinator())],
    ['its handle', new Coordinator().handle],
    ['a queue', new BoundedQueue({ capacity: 1 })],
    ['the class', Coordinator],
  ])('cannot have for a coordinator %s', async (_, coordinator) => {
    const { error } = await refusal(() => new BoundedQueue({ capacity: 1, coordinator }));
    expect(summary(error)).toBe(WRONG_TYPE);
  });

  it('cannot be made without options, without new, or with options that throw', async () => {
    expect(summary((await refusal(() => new (wrong(BoundedQueue) as any)())).error)).toBe(
      WRONG_TYPE,
    );
    expect(() => (BoundedQueue as any)({ capacity: 1 })).toThrow(TypeError);
    expect(() => new BoundedQueue(wrong(throwing('capacity')))).toThrow('the getter of capacity');
    expect(() => new BoundedQueue(wrong(hostile()))).toThrow('a trap of the proxy');
  });

  it('may be of a derived class, which attaches as the queue that it is', () => {
    class Derived<T> extends BoundedQueue<T> {
      readonly extra = 1;
    }
    const queue = new Derived<number>({ capacity: 1 });
    queue.enqueueSync(5);
    expect(BoundedQueue.attach(queue.handle)).toBe(queue);
    expect(queue.dequeueSync()).toBe(5);
  });
});

describe('options that throw when they are read', () => {
  it('fail the call with what they throw, and nothing is moved', async () => {
    const queue = new BoundedQueue<number>({ capacity: 3 });
    queue.enqueueSync(1);
    for (const key of ['timeoutMs', 'signal']) {
      const options = wrong(throwing(key));
      await expect(queue.enqueue(2, options)).rejects.toThrow(`the getter of ${key}`);
      await expect(queue.dequeue(options)).rejects.toThrow(`the getter of ${key}`);
      await expect(queue.dequeueMany(2, options)).rejects.toThrow(`the getter of ${key}`);
    }
    expect(() => queue.close(wrong(throwing('cancelPendingEnqueues')))).toThrow('the getter');
    await expect(queue.dequeue(wrong(hostile()))).rejects.toThrow('a trap of the proxy');
    expect(queue).toMatchObject({ size: 1, closed: false });
  });

  it('may call the queue before they are right', async () => {
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const options = {
      get timeoutMs() {
        queue.tryEnqueue(1);
        return 0;
      },
    };
    await expect(queue.enqueue(2, options)).rejects.toThrow('was full');
    expect(await queue.dequeue(options)).toBe(1);
  });
});

describe('attach', () => {
  const queue = new BoundedQueue({ capacity: 1 });
  const { handle } = queue;

  it.each(
    oddValues()
      .filter(({ kind }) => !['array', 'object', 'revoked'].includes(kind))
      .map(({ label, value }) => [label, value]),
  )('refuses %s', async (_, value) => {
    const { error } = await refusal(() => BoundedQueue.attach(wrong(value)));
    expect(summary(error)).toBe(WRONG_TYPE);
  });

  it.each([
    ['an empty object', {}],
    ['an array', [handle]],
    ['a coordinator', new Coordinator()],
    ['the handle of a coordinator', new Coordinator().handle],
    ['a handle with its type taken from another', { ...handle, type: 'allstop.Coordinator' }],
    ['a queue itself', queue],
    ['one of another world', { ...handle, world: 'another' }],
    ['one of no world', { ...handle, world: undefined }],
    ['one that nobody has', { ...handle, id: '999999999999999' }],
    ['an id that is a number', { ...handle, id: Number(handle.id) }],
    ['an id of 0', { ...handle, id: '0' }],
    ['a negative id', { ...handle, id: '-1' }],
    ['an id beyond all', { ...handle, id: '18446744073709551617' }],
    ['an id with something after it', { ...handle, id: `${handle.id} ` }],
    ['an id that is an object', { ...handle, id: having('toString', () => handle.id) }],
    ['a getter that throws', throwing('type')],
    ['a hostile proxy', hostile()],
    ['a revoked proxy', revoked(handle)],
  ])('refuses %s', async (_, value) => {
    const { error } = await refusal(() => BoundedQueue.attach(wrong(value)));
    expect(summary(error)).toBe(INVALID_HANDLE);
  });

  it('takes a copy of a handle with more on it', () => {
    expect(BoundedQueue.attach(wrong({ ...handle, extra: 1 }))).toBe(queue);
  });
});

describe('a method on the wrong receiver', () => {
  const properties = Object.getOwnPropertyDescriptors(BoundedQueue.prototype);
  // util.inspect shows what only looks like a queue as Node does, and throws nothing.
  const notRefused = new Set<PropertyKey>(['constructor', inspect.custom]);
  const names = Reflect.ownKeys(properties).filter((name) => !notRefused.has(name));
  const receivers: [string, unknown][] = [
    ...oddValues().map(({ label, value }): [string, unknown] => [label, value]),
    ['the prototype', BoundedQueue.prototype],
    ['what inherits from a queue', Object.create(new BoundedQueue({ capacity: 1 }))],
    ['a proxy of a queue', new Proxy(new BoundedQueue({ capacity: 1 }), {})],
    ['a coordinator', new Coordinator()],
  ];

  it.each(names.map((name) => [name]))('is a TypeError: %s', async (name) => {
    const { get, value } = properties[name as keyof typeof properties] as PropertyDescriptor;
    const method: unknown = get ?? value;
    for (const [label, receiver] of receivers) {
      if (name === Symbol.asyncIterator && (label.includes('queue') || label.includes('proxy'))) {
        continue; // the iterator calls the receiver's own `dequeue`
      }
      const { error } = await refusal(async () => {
        const result = await Reflect.apply(method as () => unknown, receiver, [5]);
        if (name === Symbol.asyncIterator) await (result as AsyncIterator<unknown>).next();
      });
      expect([label, (error as Error).constructor.name]).toEqual([label, 'TypeError']);
    }
  });
});

describe('the native object behind a queue', () => {
  it('is out of reach, and so is its class', () => {
    const queue = new BoundedQueue({ capacity: 1 });
    expect(Reflect.ownKeys(queue)).toEqual([]);
    expect(new Set(Reflect.ownKeys(BoundedQueue))).toEqual(
      new Set(['attach', 'length', 'name', 'prototype']),
    );
  });

  it('cannot be made by whoever has got hold of the addon', () => {
    const require = createRequire(import.meta.url);
    const native = require('../../build-cmake/Release/allstop.node');
    const binding = native.setup({
      threadId: 0,
      threadName: 'main',
      isWorker: false,
      allocateSlab: () => new Int32Array(new SharedArrayBuffer(4096)),
      onRing: () => {},
    });
    const made = binding.createQueue('its own', 1, 0, null);
    const { constructor } = made;
    expect(() => new constructor()).toThrow('illegal constructor');
    expect(() => constructor()).toThrow(TypeError);
    class Derived extends constructor {}
    expect(() => new Derived()).toThrow('illegal constructor');
    for (const name of Object.getOwnPropertyNames(constructor.prototype)) {
      if (name === 'constructor') continue;
      expect(() => constructor.prototype[name].call({})).toThrow();
      expect(() => constructor.prototype[name].call(Object.create(made))).toThrow();
    }
  });

  it('is not mistaken by other addons for a coordinator, nor the other way round', () => {
    expect(addon.status(new BoundedQueue({ capacity: 1 }))).toBe(100);
    expect(addon.queueStatus(new Coordinator())).toBe(100);
  });
});

it('what was refused has left no wait behind', async () => {
  const queue = new BoundedQueue<number>({ capacity: 1 });
  queue.enqueueSync(1);
  for (const options of [{ timeoutMs: -1 }, { signal: {} }, { timeoutMs: 'x' }, 5]) {
    await expect(queue.enqueue(2, wrong(options))).rejects.toThrow();
  }
  await expect(
    queue.enqueue(
      wrong(() => {}),
      { signal },
    ),
  ).rejects.toThrow(TypeError);
  queue.close();
  expect(queue.tryDequeue()).toBe(1);
  expect(() => queue.tryDequeue()).toThrow('closed and empty');
});
