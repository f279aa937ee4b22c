// LooperThread: it runs until a stop, and its errors stop the coordinator. The due times are tested
// without a clock, and in C++, too (test/native/looper_thread_test.cc).

import {
  Coordinator,
  FailedPreconditionError,
  LooperThread,
  type LooperThreadOptions,
  OutOfRangeError,
  SelfJoinError,
  StragglersError,
} from 'allstop';
import { describe, expect, it } from 'vitest';
import { LooperSchedule, type MissedTicks } from '../../../lib/looper/looper-loop.ts';
import { gate, isPending, turn } from '../../support/gate.ts';
import { hostile, throwing } from '../../support/odd-values.ts';
import {
  coordinatorThatIs,
  misbehaviour,
  type Parameter,
  refusal,
  type State,
} from '../../support/refusals.ts';

const ENDLESS = Number.POSITIVE_INFINITY;
const wrong = (value: unknown): never => value as never;
const nothing = (): void => {};
const module = new URL('../../fixtures/looper-target.mjs', import.meta.url);

/** A module with this source, for use as a target. */
const source = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

/** Records its calls and requests a stop in its third run. */
class Recording extends LooperThread {
  readonly calls: string[] = [];
  readonly #coord: Coordinator;

  constructor(coord: Coordinator, options?: LooperThreadOptions) {
    super(coord, 0, options);
    this.#coord = coord;
  }

  override async startLoop(): Promise<void> {
    await turn();
    this.calls.push('start');
  }

  override runLoop(): unknown {
    this.calls.push('run');
    if (this.calls.length === 4) this.#coord.requestStop();
    return turn();
  }

  override async stopLoop(): Promise<void> {
    await turn();
    this.calls.push('stop');
  }
}

describe('when its runs are due', () => {
  /** The times at which runs begin. The first runs take `took` milliseconds each, the others 0. */
  function runs(
    intervalMs: number,
    missedTicks: MissedTicks,
    took: number[],
    count: number,
  ): number[] {
    const schedule = new LooperSchedule({ intervalMs, missedTicks });
    const begun: number[] = [];
    for (let now = 0; begun.length < count; now += took[begun.length - 1] ?? 0) {
      now = Math.max(now, schedule.next(now));
      if (now === ENDLESS) break;
      begun.push(now);
    }
    return begun;
  }

  it.each<[MissedTicks, number[]]>([
    ['burst', [0, 550, 550, 550, 550, 550, 600, 700, 800]], // TensorFlow's
    ['skip', [0, 600, 700, 800, 900, 1000, 1100, 1200, 1300]],
    ['delay', [0, 650, 750, 850, 950, 1050, 1150, 1250, 1350]],
  ])('%s: after a first run of 550 ms every 100 ms', (missedTicks, begun) => {
    expect(runs(100, missedTicks, [550], 9)).toEqual(begun);
  });

  it.each<[MissedTicks, number[]]>([
    ['burst', [0, 100, 200, 300]],
    ['skip', [0, 100, 200, 300]],
    ['delay', [0, 130, 260, 390]],
  ])('%s: runs of 30 ms every 100 ms', (missedTicks, begun) => {
    expect(runs(100, missedTicks, [30, 30, 30], 4)).toEqual(begun);
  });

  it.each<MissedTicks>(['burst', 'skip', 'delay'])('%s: back to back, and once', (missedTicks) => {
    expect(runs(0, missedTicks, [5, 5, 5], 4)).toEqual([0, 5, 10, 15]);
    expect(runs(ENDLESS, missedTicks, [5], 2)).toEqual([0]);
  });

  it('skip runs on a boundary that is just reached', () => {
    expect(runs(100, 'skip', [100, 200], 4)).toEqual([0, 100, 300, 400]);
  });
});

describe('the life of a looper', () => {
  it('registers itself, holds up no join until it is started, and ends with the stop', async () => {
    const coord = new Coordinator();
    const ran = gate();
    const looper = new LooperThread(coord, ENDLESS, { target: ran.open, name: 'pulse' });
    expect(coord.threads).toMatchObject([{ name: 'pulse', kind: 'looper', alive: false }]);
    expect(coord.explain().toString()).toContain('pulse (looper): not started');
    expect(looper).toMatchObject({ name: 'pulse', alive: false });
    await looper.join();

    expect(looper.start()).toBe(looper);
    expect(looper.alive).toBe(true);
    const joined = coord.join();
    await ran.opened;
    expect(coord.threads).toMatchObject([{ name: 'pulse', kind: 'looper', alive: true }]);
    expect(await isPending(joined)).toBe(true);
    coord.requestStop();
    await joined;
    await looper.join();
    expect(looper.alive).toBe(false);
    expect(coord.threads).toEqual([]);
    expect(coord.explain().recentlyEnded).toMatchObject([{ name: 'pulse', kind: 'looper' }]);
  });

  it('that was never started does not hold up a join', async () => {
    const coord = new Coordinator();
    const looper = new LooperThread(coord, 1, { target: nothing });
    await coord.join();
    await coord.join([looper]);
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0 });
    expect(coord.explain().recentlyEnded).toEqual([]);
  });

  it('that is started when a join has forgotten it is registered again', async () => {
    const coord = new Coordinator();
    const looper = new LooperThread(coord, ENDLESS, { target: nothing });
    await coord.join();
    expect(coord.threads).toEqual([]);
    looper.start();
    const joined = coord.join();
    expect(await isPending(joined)).toBe(true);
    coord.requestStop();
    await joined;
  });

  it('starts once', async () => {
    const coord = new Coordinator();
    const looper = LooperThread.loop(coord, ENDLESS, nothing);
    expect(() => looper.start()).toThrow(FailedPreconditionError);
    expect(() => looper.start()).toThrow(
      `LooperThread '${looper.name}' can be started only once: make a new one`,
    );
    coord.requestStop();
    await looper.join();
    expect(() => looper.start()).toThrow(FailedPreconditionError);
  });

  it('is the same thread to join() and registerThread() of its coordinator', async () => {
    const coord = new Coordinator();
    const looper = new LooperThread(coord, ENDLESS, { target: nothing, name: 'one' });
    coord.registerThread(looper, { name: 'another name' });
    looper.start();
    coord.registerThread(looper);
    const joined = coord.join([looper]);
    expect(coord.threads.map(({ name, kind }) => [name, kind])).toEqual([['one', 'looper']]);
    coord.requestStop();
    await joined;
  });

  it('can be joined by another coordinator, too', async () => {
    const coord = new Coordinator();
    const other = new Coordinator();
    const looper = LooperThread.loop(coord, ENDLESS, nothing, { name: 'shared' });
    const joined = other.join([looper]);
    expect(other.threads).toMatchObject([{ name: 'shared', kind: 'custom' }]);
    coord.requestStop();
    await joined;
  });

  it('is a straggler by its name', async () => {
    const coord = new Coordinator();
    const [ran, held] = [gate(), gate()];
    const target = (): Promise<void> => {
      ran.open();
      return held.opened;
    };
    const looper = LooperThread.loop(coord, 0, target, { name: 'stuck' });
    await ran.opened;
    coord.requestStop();
    const error = await coord.join({ stopGracePeriodMs: 0 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StragglersError);
    expect((error as StragglersError).stragglers).toMatchObject([
      { name: 'stuck', kind: 'looper' },
    ]);
    held.open();
    await looper.join();
  });

  it('is named by its function or class, if nobody names it', () => {
    const coord = new Coordinator();
    expect(new LooperThread(coord, 1, { target: nothing }).name).toBe('nothing');
    expect(new Recording(coord).name).toBe('Recording');
    expect(new Recording(coord, { target: nothing }).name).toBe('nothing');
    expect(new LooperThread(coord, 1, { target: () => {} }).name).toBe('target');
    expect(new LooperThread(coord, 1, { target: module }).name).toBe('looper');
  });
});

describe('its runs', () => {
  it.each([null, 0, 1])('call the target with its args until the stop, every %s ms', async (ms) => {
    const coord = new Coordinator();
    const seen: unknown[] = [];
    const shared = { by: 'reference' };
    const target = (...args: unknown[]): void => {
      seen.push(args);
      if (seen.length === 3) coord.requestStop();
    };
    LooperThread.loop(coord, ms, target, { args: [shared, 2] });
    await coord.join();
    expect(seen).toEqual([0, 1, 2].map(() => [shared, 2]));
    expect((seen[0] as unknown[])[0]).toBe(shared);
  });

  it('are awaited: two never overlap', async () => {
    const coord = new Coordinator();
    let running = 0;
    let most = 0;
    let runs = 0;
    LooperThread.loop(coord, null, async () => {
      most = Math.max(most, ++running);
      await turn();
      running--;
      if (++runs === 5) coord.requestStop();
    });
    await coord.join();
    expect([most, runs]).toEqual([1, 5]);
  });

  it.each([null, 1e-6])('let the event loop turn in between, every %s ms', async (ms) => {
    const coord = new Coordinator();
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    LooperThread.loop(coord, ms, () => {
      if (turned) coord.requestStop();
    });
    await coord.join();
  });

  it('of several loopers take turns', async () => {
    const coord = new Coordinator();
    const order: string[] = [];
    for (const name of ['a', 'b']) {
      LooperThread.loop(coord, null, () => {
        order.push(name);
        if (order.length === 6) coord.requestStop();
      });
    }
    await coord.join();
    expect(order).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  });

  it.each<MissedTicks>(['burst', 'skip', 'delay'])('begin at once: %s', async (missedTicks) => {
    const coord = new Coordinator();
    const ran = gate();
    LooperThread.loop(coord, ENDLESS, ran.open, { missedTicks });
    await ran.opened;
    coord.requestStop();
    await coord.join();
  });

  it.each([2 ** 31, 2 ** 53, Number.MAX_VALUE, ENDLESS])('%d ms apart are one run', async (ms) => {
    const coord = new Coordinator();
    let runs = 0;
    LooperThread.loop(coord, ms, () => runs++);
    await new Promise((resolve) => {
      setTimeout(resolve, 20); // a timer whose duration overflows would fire within this time
    });
    coord.requestStop();
    await coord.join();
    expect(runs).toBe(1);
  });
});

describe('a stop', () => {
  it('that is cleared at once ends the wait of a looper all the same', async () => {
    const coord = new Coordinator();
    const ran = gate();
    const looper = LooperThread.loop(coord, ENDLESS, ran.open);
    await ran.opened;
    await turn();
    coord.requestStop();
    coord.clearStop();
    await looper.join();
    expect(coord.shouldStop()).toBe(false);
  });

  it('that is cleared at once during a run ends it, too', async () => {
    const coord = new Coordinator();
    let runs = 0;
    const looper = LooperThread.loop(coord, null, () => {
      runs++;
      coord.requestStop();
      coord.clearStop();
    });
    await looper.join();
    expect(runs).toBe(1);
  });

  it('from before its start does not stop it once it is cleared', async () => {
    const coord = new Coordinator();
    const ran = gate();
    const looper = new LooperThread(coord, ENDLESS, { target: ran.open });
    coord.requestStop();
    coord.clearStop();
    looper.start();
    await ran.opened;
    coord.requestStop();
    await looper.join();
  });
});

describe('the hooks of a derived class', () => {
  it('are called in their order, and awaited', async () => {
    const coord = new Coordinator();
    const looper = new Recording(coord).start();
    await coord.join();
    expect(looper.calls).toEqual(['start', 'run', 'run', 'run', 'stop']);
  });

  it('startLoop and stopLoop are called even if a stop was requested before', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    const looper = new Recording(coord).start();
    await looper.join();
    expect(looper.calls).toEqual(['start', 'stop']);
  });

  it('stopLoop is called even if a run throws, when the stop is there', async () => {
    const coord = new Coordinator();
    const error = new Error('from a run');
    let seen: unknown;
    class Failing extends LooperThread {
      override runLoop(): never {
        throw error;
      }
      override stopLoop(): void {
        seen = coord.stopRecord?.error;
      }
    }
    new Failing(coord, 1).start();
    await expect(coord.join()).rejects.toBe(error);
    expect(seen).toBe(error);
  });

  it('stopLoop is not called if startLoop throws, and nor is a run', async () => {
    const coord = new Coordinator();
    const error = new Error('from startLoop');
    class Failing extends Recording {
      override async startLoop(): Promise<void> {
        await super.startLoop();
        throw error;
      }
    }
    const looper = new Failing(coord).start();
    await expect(coord.join()).rejects.toBe(error);
    expect(looper.calls).toEqual(['start']);
    expect(coord.stopRecord?.requester).toMatchObject({ via: 'exception', threadName: 'Failing' });
  });

  it('what stopLoop throws is an error like any other: behind that of the run', async () => {
    const coord = new Coordinator();
    const [first, second] = [new Error('from a run'), new Error('from stopLoop')];
    class Failing extends LooperThread {
      override runLoop(): never {
        throw first;
      }
      override stopLoop(): never {
        throw second;
      }
    }
    new Failing(coord, 1).start();
    await expect(coord.join()).rejects.toBe(first);
    expect(coord.stopRecord?.suppressed.map(({ error }) => error)).toEqual([second]);
  });

  it('may call the target', async () => {
    const coord = new Coordinator();
    const calls: string[] = [];
    class Wrapping extends LooperThread {
      override runLoop(): unknown {
        calls.push('before');
        return super.runLoop();
      }
    }
    const target = (text: string): void => {
      calls.push(text);
      coord.requestStop();
    };
    new Wrapping(coord, 1, { target, args: ['target'] }).start();
    await coord.join();
    expect(calls).toEqual(['before', 'target']);
  });
});

describe('an error of a run', () => {
  it.each([
    [
      'thrown',
      (error: unknown) => {
        throw error;
      },
    ],
    [
      'rejected',
      async (error: unknown) => {
        throw error;
      },
    ],
  ])('%s: stops the coordinator in the name of the looper, which ends', async (_, fail) => {
    const coord = new Coordinator();
    const error = new TypeError('no pulse');
    const looper = LooperThread.loop(coord, 1, fail, { args: [error], name: 'heart' });
    await looper.join(); // never rejects
    expect(looper.alive).toBe(false);
    await expect(coord.join()).rejects.toBe(error);
    expect(coord.stopRecord?.requester).toMatchObject({ via: 'exception', threadName: 'heart' });
  });

  it('of a clean type stops it cleanly, and the looper ends', async () => {
    const coord = new Coordinator();
    const looper = LooperThread.loop(coord, 1, () => {
      throw new OutOfRangeError('the end');
    });
    await looper.join();
    await coord.join();
    expect(coord.stopRecord?.kind).toBe('clean');
  });

  it('after the join is suppressed, and its looper never rejects', async () => {
    const coord = new Coordinator();
    const [ran, held] = [gate(), gate()];
    const looper = LooperThread.loop(coord, 1, () => {
      ran.open();
      return held.opened;
    });
    await ran.opened;
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    held.fail(new Error('too late'));
    await looper.join();
    expect(coord.stopRecord?.suppressed).toMatchObject([{ error: { message: 'too late' } }]);
  });
});

describe('a looper that joins itself', () => {
  it.each<[string, (coord: Coordinator, own: () => LooperThread) => unknown]>([
    ['by its coordinator', (coord) => coord.join()],
    ['by its coordinator, by name', (coord, own) => coord.join([own()])],
    ['directly', (_, own) => own().join()],
  ])('%s is told so', async (_, join) => {
    const coord = new Coordinator();
    const looper: LooperThread = LooperThread.loop(coord, 1, () => join(coord, () => looper));
    await looper.join();
    expect(coord.stopRecord?.error).toBeInstanceOf(SelfJoinError);
  });

  it('in stopLoop is told so', async () => {
    const coord = new Coordinator();
    class Joining extends LooperThread {
      override runLoop(): void {
        coord.requestStop(new Error('first'));
      }
      override stopLoop(): Promise<void> {
        return coord.join();
      }
    }
    await new Joining(coord, 1).start().join();
    expect(coord.stopRecord?.suppressed[0]?.error).toBeInstanceOf(SelfJoinError);
  });
});

describe('a module as the target', () => {
  const looping = (coord: Coordinator, ...args: unknown[]): LooperThread =>
    LooperThread.loop(coord, 1, module, { args, name: 'moving' });

  it('runs in a Worker, one thread of the coordinator, until the stop', async () => {
    const coord = new Coordinator();
    const memory = new SharedArrayBuffer(4);
    const looper = looping(coord, 'counts', memory);
    expect(coord.threads).toMatchObject([{ name: 'moving', kind: 'looper', alive: true }]);
    await turn();
    expect(coord.threads).toMatchObject([{ name: 'moving', threadId: expect.any(Number) }]);
    await coord.join();
    await looper.join();
    expect([...new Int32Array(memory)]).toEqual([3]);
    expect(coord.explain().recentlyEnded.map(({ name }) => name)).toEqual(['moving']);
    expect(coord.stopRecord?.requester.threadId).toBe(coord.explain().recentlyEnded[0]?.threadId);
  });

  it.each(['throws', 'rejects'])('that %s stops it, class and fields intact', async (how) => {
    const coord = new Coordinator();
    looping(coord, how);
    const error = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: 'full', disk: 'sda' });
    expect(coord.stopRecord?.requester).toMatchObject({
      via: 'worker-exit',
      threadName: 'moving',
      threadId: coord.explain().recentlyEnded[0]?.threadId,
    });
  });

  it('that throws nothing has thrown', async () => {
    const coord = new Coordinator();
    looping(coord, 'throwsNothing');
    expect(await coord.waitForStop()).toBe(true);
    expect(coord.stopRecord).toMatchObject({ kind: 'error', error: undefined });
    await coord.join().catch(() => {});
  });

  it('that joins its own coordinator is told so', async () => {
    const coord = new Coordinator();
    looping(coord, 'joins');
    await expect(coord.join()).rejects.toBeInstanceOf(SelfJoinError);
  });

  it('that exits with a code has died', async () => {
    const coord = new Coordinator();
    looping(coord, 'exits');
    await expect(coord.join()).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      exitCode: 3,
    });
  });

  it('ends with the stop, whatever its module has left open', async () => {
    const coord = new Coordinator();
    const text = 'setInterval(() => {}, 1_000); export default (words) => Atomics.notify(words, 0)';
    const words = new Int32Array(new SharedArrayBuffer(4));
    const ran = Atomics.waitAsync(words, 0, 0);
    LooperThread.loop(coord, 1, source(text), { args: [words] });
    await ran.value;
    coord.requestStop();
    await coord.join();
  });

  it('is kept alive by the looper while a run is pending', async () => {
    const coord = new Coordinator();
    looping(coord, 'waitsUnreferenced');
    await coord.join();
    expect(coord.stopRecord?.kind).toBe('plain');
  });

  it('without a function as its default export is a TypeError of the coordinator', async () => {
    for (const text of ['export const a = 1', 'export default 5']) {
      const coord = new Coordinator();
      LooperThread.loop(coord, 1, source(text));
      await expect(coord.join()).rejects.toThrow(/has no function as its default export/);
      expect(coord.stopRecord?.error).toBeInstanceOf(TypeError);
      expect(coord.stopRecord?.error).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      expect(coord.stopRecord?.error).toMatchObject({
        message: expect.stringContaining("of the LooperThread 'looper' has no function"),
      });
    }
  });

  it('that is not there, or fails to load, stops it with that error', async () => {
    const coord = new Coordinator();
    LooperThread.loop(coord, 1, new URL('file:///no/such/file.mjs'));
    await expect(coord.join()).rejects.toMatchObject({ code: 'ERR_MODULE_NOT_FOUND' });
    coord.clearStop();
    LooperThread.loop(coord, 1, source("throw new RangeError('on load')"));
    await expect(coord.join()).rejects.toThrow(new RangeError('on load'));
  });

  it('is waited for at once, and a stop that is cleared at once ends it', async () => {
    const coord = new Coordinator();
    const looper = LooperThread.loop(coord, ENDLESS, source('export default () => {}'));
    await turn();
    coord.requestStop(); // while its Worker is starting
    coord.clearStop();
    await looper.join();
    await coord.join();
    expect(coord.stopRecord).toBeUndefined();
  });

  it('has the hooks of its class on this side, the last when the worker has ended', async () => {
    const coord = new Coordinator();
    const calls: unknown[] = [];
    class Hooked extends LooperThread {
      override startLoop(): void {
        calls.push('start');
      }
      override stopLoop(): void {
        calls.push('stop', coord.shouldStop(), this.alive);
      }
    }
    new Hooked(coord, 1, { target: module, args: ['throws'] }).start();
    await expect(coord.join()).rejects.toThrow('full');
    expect(calls).toEqual(['start', 'stop', true, true]);
  });

  it('is not even loaded if a stop was requested before', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    await LooperThread.loop(coord, 1, new URL('file:///no/such/file.mjs')).join();
    await coord.join();
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });
});

describe('refused, and nothing registered', () => {
  const parameters: Parameter[] = [
    {
      call: 'new LooperThread(coord)',
      argument: 'coord',
      pass: (_, v) => new LooperThread(wrong(v), 1, { target: nothing }),
      objects: true,
    },
    {
      call: 'new LooperThread(coord, intervalMs)',
      argument: 'intervalMs',
      pass: (coord, v) => new LooperThread(coord, wrong(v), { target: nothing }),
      except: ['null', 'number'],
      objects: true,
    },
    {
      call: 'new LooperThread(coord, 1, options)',
      argument: 'options',
      pass: (coord, v) => new Recording(coord, wrong(v)),
      except: ['undefined', 'object'],
    },
    ...(
      [
        ['target', { except: ['undefined', 'function'], objects: true }],
        ['args', { except: ['undefined', 'array'], objects: true }],
        ['name', { except: ['undefined', 'string'], objects: true }],
        ['missedTicks', { except: ['undefined'], objects: true, oneOf: true }],
      ] as [string, Pick<Parameter, 'except' | 'objects' | 'oneOf'>][]
    ).map(([key, about]) => ({
      call: `new LooperThread(coord, 1, { ${key} })`,
      argument: `options.${key}`,
      pass: (coord: Coordinator, v: unknown) =>
        new LooperThread(coord, 1, { target: nothing, [key]: v } as never),
      ...about,
    })),
    {
      call: 'LooperThread.loop(coord, 1, target)',
      argument: 'target',
      pass: (coord, v) => LooperThread.loop(coord, 1, wrong(v)),
      except: ['function'],
      objects: true,
    },
  ];

  it.each<State>(['running', 'stopped', 'joined'])('a wrong argument: %s', async (state) => {
    for (const parameter of parameters) {
      expect(await misbehaviour(await coordinatorThatIs(state), parameter)).toEqual([]);
    }
  });

  const TYPE = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });

  it.each<[string, (coord: Coordinator) => unknown, unknown]>([
    ['neither a target nor a runLoop', (coord) => new LooperThread(coord, 1), TYPE],
    [
      'no coordinator',
      () =>
        LooperThread.loop(...([1, () => {}] as unknown as Parameters<typeof LooperThread.loop>)),
      expect.objectContaining({ message: expect.stringContaining('"coord" argument') }),
    ],
    ['args without a target', (coord) => new LooperThread(coord, 1, { args: [] }), TYPE],
    [
      'args without a target in a derived class',
      (coord) => new Recording(coord, { args: [1] }),
      TYPE,
    ],
    [
      'a module beside a runLoop of its own',
      (coord) => new Recording(coord, { target: module }),
      TYPE,
    ],
    [
      'args of a module that cannot be cloned',
      (coord) => LooperThread.loop(coord, 1, module, { args: [1, { nothing }] }),
      expect.objectContaining({
        name: 'DataCloneError',
        message:
          'The arguments of the module cannot be cloned: options.args[1].nothing is a function',
      }),
    ],
    [
      'a getter that throws',
      (coord) => new LooperThread(coord, 1, throwing('args') as never),
      new Error('the getter of args'),
    ],
    [
      'a hostile proxy',
      (coord) => LooperThread.loop(coord, 1, nothing, hostile()),
      new Error('a trap of the proxy'),
    ],
    [
      'what only inherits from a coordinator',
      (coord) => new LooperThread(Object.create(coord) as Coordinator, 1, { target: nothing }),
      TYPE,
    ],
  ])('%s', async (_, call, expected) => {
    const coord = new Coordinator();
    const { error } = await refusal(coord, () => call(coord));
    expect(error).toEqual(expected);
  });
});

describe('a derived class', () => {
  it('may have its runLoop as a field', async () => {
    const coord = new Coordinator();
    class Field extends LooperThread {
      override runLoop = (): void => coord.requestStop();
    }
    await new Field(coord, null).start().join();
    expect(coord.shouldStop()).toBe(true);
  });

  it('that has its runLoop as a field cannot be started with a module, either', () => {
    class Field extends LooperThread {
      override runLoop = nothing;
    }
    const looper = new Field(new Coordinator(), 1, { target: module });
    expect(() => looper.start()).toThrow(/a function where runLoop is overridden/);
    expect(looper.alive).toBe(false);
  });

  it('that has neither a runLoop nor a target cannot be started', () => {
    const coord = new Coordinator();
    class Idle extends LooperThread {}
    const looper = new Idle(coord, 1);
    expect(() => looper.start()).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
    expect(() => looper.start()).toThrow(/unless a derived class overrides runLoop\(\)/);
    expect(looper.alive).toBe(false);
  });
});

it('skips what cannot be counted', () => {
  const schedule = new LooperSchedule({ intervalMs: Number.MIN_VALUE, missedTicks: 'skip' });
  expect([schedule.next(0), schedule.next(5), schedule.next(6)]).toEqual([0, 5, 6]);
});
