// A value that is not a thread is refused before any thread is registered: join([good, bad]) does
// not register `good`. A thread with misleading properties does no harm.

import { ChildProcess } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import { Coordinator, SelfJoinError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { having, hostile, oddValues, revoked, throwing } from '../support/odd-values.ts';
import {
  coordinatorThatIs,
  misbehaviour,
  type Parameter,
  refusal,
  type State,
} from '../support/refusals.ts';

const wrong = (value: unknown): never => value as never;
const endless = (): Promise<never> => new Promise(() => {});
const NO_THREAD = expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' });

const parameters: Parameter[] = [
  {
    call: 'registerThread(thread)',
    argument: 'thread',
    pass: (coord, v) => coord.registerThread(wrong(v)),
    objects: true,
  },
  {
    call: 'join([good, thread])',
    argument: 'threads[]',
    pass: (coord, v) => coord.join([endless(), wrong(v)]),
    rejects: true,
    objects: true,
  },
  {
    call: 'join(threads, {})',
    argument: 'threads',
    pass: (coord, v) => coord.join(wrong(v), {}),
    rejects: true,
    except: ['undefined', 'array', 'object'],
  },
];

describe.each<State>(['running', 'stopped', 'joined'])('a coordinator that is %s', (state) => {
  it.each(parameters)('$call refuses what is not a thread', async (parameter) => {
    expect(await misbehaviour(await coordinatorThatIs(state), parameter)).toEqual([]);
  });
});

describe('a coordinator as a thread of itself', () => {
  it.each<[string, (coord: Coordinator) => unknown]>([
    ['join', (coord) => coord.join([coord])],
    ['registerThread', (coord) => coord.registerThread(coord)],
  ])('is refused by %s', async (_, call) => {
    const coord = new Coordinator({ name: 'me' });
    const { error } = await refusal(coord, () => call(coord));
    expect(error).toBeInstanceOf(SelfJoinError);
    expect(error.message).toContain("The coordinator 'me' cannot be a thread of itself");
  });

  it('but another coordinator is a thread like any other', async () => {
    const coord = new Coordinator();
    await coord.join([new Coordinator()]);
  });
});

describe('join', () => {
  it.each([
    ['a string', 'threads'],
    ['an empty string', ''],
    ['a promise without brackets', endless()],
    ['a thread without brackets', { name: 'bare', join: endless }],
    ['a coordinator without brackets', new Coordinator()],
    ['an object whose Symbol.iterator is not a function', { [Symbol.iterator]: 5 }],
  ])('does not take %s for its threads, nor for its options', async (_, value) => {
    const coord = new Coordinator();
    const { error, rejected } = await refusal(coord, () => coord.join(wrong(value)));
    expect(error).toEqual(NO_THREAD);
    expect(error.message).toMatch(/^The "threads" argument must be an iterable of threads\./);
    expect(rejected).toBe(true);
  });

  it('does not take a list in a list: an array has a join(), which waits for nothing', async () => {
    const coord = new Coordinator();
    const { error } = await refusal(coord, () => coord.join([wrong([endless()])]));
    expect(error).toEqual(NO_THREAD);
    expect(() => coord.registerThread(wrong([endless()]))).toThrow(/a join\(\) method/);
    expect(() => coord.registerThread(wrong(new Uint8Array(2)))).toThrow(/a join\(\) method/);
  });

  it('registers nothing of an iterable that throws half-way', async () => {
    const coord = new Coordinator();
    const half = function* (): Generator<Promise<never>> {
      yield endless();
      yield endless();
      throw new Error('half-way');
    };
    const { error } = await refusal(coord, () => coord.join(half()));
    expect(error.message).toBe('half-way');
  });

  it('closes an iterator of which it needs no more, by walking it to its end', async () => {
    const coord = new Coordinator();
    let walked = 0;
    const two = function* (): Generator<Promise<void>> {
      for (; walked < 2; walked++) yield Promise.resolve();
    };
    await coord.join(two());
    expect(walked).toBe(2);
    expect(coord.explain().recentlyEnded).toHaveLength(2);
  });

  it('registers nothing when its signal is aborted already', async () => {
    const coord = new Coordinator();
    const reason = new Error('the reason');
    const options = { signal: AbortSignal.abort(reason) };
    const { error } = await refusal(coord, () => coord.join([endless()], options));
    expect(error).toBe(reason);
  });

  it('reads the options before the threads, and the threads before it registers any', async () => {
    const coord = new Coordinator();
    const read: string[] = [];
    const threads = {
      *[Symbol.iterator](): Generator<never> {
        read.push('threads');
        yield wrong({});
      },
    };
    const options = {
      get stopGracePeriodMs() {
        read.push('options');
        return 0;
      },
    };
    const { error } = await refusal(coord, () => coord.join(threads, options));
    expect(error).toEqual(NO_THREAD);
    expect(read).toEqual(['options', 'threads']);
  });

  it('takes whatever iterable holds good ones', async () => {
    const coord = new Coordinator();
    const done = (): Promise<void> => Promise.resolve();
    await coord.join(new Set([done(), done()]));
    await coord.join(new Map([['a', done()]]).values());
    await coord.join(
      Object.assign(Object.create(null), { [Symbol.iterator]: () => [][Symbol.iterator]() }),
    );
    await coord.join([], undefined);
    await coord.join(wrong(undefined), {});
    await coord.join(wrong(undefined), undefined);
    expect(coord.explain().recentlyEnded).toHaveLength(3);
  });
});

describe('objects that only look like threads', () => {
  it.each([
    ['an object that inherits from Worker', Object.create(Worker.prototype)],
    ['an object that inherits from ChildProcess', Object.create(ChildProcess.prototype)],
    ['the prototype of Worker', Worker.prototype],
    ['the class Worker', Worker],
    ['a throwing then', throwing('then')],
    ['a throwing join', throwing('join')],
    ['a hostile proxy', hostile()],
    ['a revoked proxy', revoked()],
    ['a revoked function', revoked(() => {})],
  ])('%s is refused', async (_, value) => {
    const coord = new Coordinator();
    for (const call of [
      () => coord.registerThread(wrong(value)),
      () => coord.join([endless(), wrong(value)]),
    ]) {
      const { error } = await refusal(coord, call);
      expect(error).toEqual(NO_THREAD);
    }
  });
});

describe('threads that misbehave', () => {
  const stopOf = async (thread: object): Promise<unknown> => {
    const coord = new Coordinator();
    coord.registerThread(wrong(thread));
    expect(await coord.waitForStop()).toBe(true);
    await expect(coord.join()).rejects.toBe(coord.stopRecord?.error);
    expect(coord.threads).toEqual([]);
    return coord.stopRecord?.error;
  };

  it('a join() that throws is a thread that fails', async () => {
    const error = new Error('from join()');
    const join = (): never => {
      throw error;
    };
    expect(await stopOf({ join })).toBe(error);
  });

  it('a promise whose constructor throws fails, and one whose then throws is no promise', async () => {
    const spoiled = (key: string): Promise<void> =>
      Object.defineProperties(
        Promise.resolve(),
        Object.getOwnPropertyDescriptors(throwing(key)) as PropertyDescriptorMap,
      );
    expect(await stopOf(spoiled('constructor'))).toEqual(new Error('the getter of constructor'));
    const coord = new Coordinator();
    const { error } = await refusal(coord, () => coord.registerThread(spoiled('then')));
    expect(error).toEqual(NO_THREAD);
  });

  it('a thenable that calls back twice, or both ways, ends once', async () => {
    const coord = new Coordinator();
    const twice = having(
      'then',
      (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
        resolve(1);
        reject(new Error('too late'));
        resolve(2);
        throw new Error('far too late');
      },
    );
    await coord.join([wrong(twice)]);
    expect(coord.stopRecord).toBeUndefined();
    expect(coord.explain().recentlyEnded).toHaveLength(1);
  });

  it('a thenable whose then throws is a thread that fails', async () => {
    const error = new Error('from then()');
    const then = (): never => {
      throw error;
    };
    expect(await stopOf(having('then', then))).toBe(error);
  });

  it.each([
    ['throws', throwing('name')],
    ['is a symbol', { name: Symbol('no name') }],
    ['is a number', { name: 5 }],
    ['is empty', { name: '' }],
  ])('a name that %s is no name', async (_, named) => {
    const coord = new Coordinator();
    const thread = Object.defineProperties(
      { join: endless },
      Object.getOwnPropertyDescriptors(named),
    );
    coord.registerThread(thread as never);
    expect(coord.threads.map(({ name }) => name)).toEqual(['thread']);
  });

  it('a function whose name is no string is a task like any other', async () => {
    const coord = new Coordinator();
    for (const value of [5, '', Symbol('no name'), undefined]) {
      await coord.start(Object.defineProperty(() => {}, 'name', { value }));
    }
    await coord.start(
      Object.defineProperties(
        () => {},
        Object.getOwnPropertyDescriptors(throwing('name')) as PropertyDescriptorMap,
      ),
    );
    expect(coord.explain().recentlyEnded.map(({ name }) => name)).toEqual(Array(5).fill('task'));
    expect(coord.stopRecord).toBeUndefined();
  });

  it('a task that returns a thing with a hostile then fails, and start() never rejects', async () => {
    const coord = new Coordinator();
    await coord.start(() => throwing('then'));
    expect(coord.stopRecord?.error).toEqual(new Error('the getter of then'));
    expect(coord.stopRecord?.requester.via).toBe('exception');
  });

  it('stopOnException takes hostile results as they come', async () => {
    const coord = new Coordinator();
    expect(coord.stopOnException(() => throwing('then'))).toBeUndefined();
    expect(coord.stopRecord?.error).toEqual(new Error('the getter of then'));
    coord.clearStop();
    const trusting = Object.assign(Promise.reject(new Error('own catch')), { catch: () => 5 });
    await coord.stopOnException(() => trusting);
    expect(coord.stopRecord?.error).toEqual(new Error('own catch'));
    coord.clearStop();
    for (const { value } of oddValues()) {
      if (typeof value !== 'object') expect(coord.stopOnException(() => value)).toBe(value);
    }
    expect(coord.shouldStop()).toBe(false);
  });

  it('a task that joins its own coordinator is told so', async () => {
    const coord = new Coordinator();
    await coord.start(async (same) => same.join());
    expect(coord.stopRecord?.error).toBeInstanceOf(SelfJoinError);
  });
});

describe('spawn', () => {
  const url = new URL('data:text/javascript,');

  it('throws what new Worker throws, and registers nothing', async () => {
    const coord = new Coordinator();
    for (const value of [undefined, null, 5, 5n, Symbol('x'), {}, () => {}, '', 'relative.js']) {
      const { error } = await refusal(coord, () => coord.spawn(wrong(value)));
      const likewise = await refusal(coord, () => new Worker(wrong(value)));
      expect(error).toEqual(likewise.error);
    }
    const options = { execArgv: ['--no-such-option'] };
    const { error } = await refusal(coord, () => coord.spawn(url, options));
    expect(error).toMatchObject({ code: 'ERR_WORKER_INVALID_EXEC_ARGV' });
  });

  it.each([0, '', false, null, Number.NaN, undefined])(
    'names a worker itself when Node lets the name %s pass',
    async (name) => {
      const coord = new Coordinator();
      const worker = coord.spawn(url, { name: wrong(name) });
      expect(coord.threads).toMatchObject([{ name: `worker-${worker.threadId}`, kind: 'worker' }]);
      await coord.join();
    },
  );

  it('a worker whose file is not there stops the coordinator', async () => {
    const coord = new Coordinator();
    coord.spawn(new URL('file:///no/such/file.mjs'));
    await expect(coord.join()).rejects.toMatchObject({
      code: expect.stringMatching(/MODULE_NOT_FOUND/),
    });
    expect(coord.stopRecord?.requester.via).toBe('worker-exit');
  });
});
