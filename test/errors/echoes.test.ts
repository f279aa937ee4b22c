// After a stop, each task that used the signal rejects because of it: these echoes of the stop are
// not new errors. An error that is not an echo is kept in `suppressed`.

import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Coordinator, OutOfRangeError } from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turn } from '../support/gate.ts';
import { OtherThread } from '../support/other-thread.ts';
import { addon } from '../support/test-addon.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It did not reject');
}

/** An AbortError as `fetch` makes it, with a cause. */
function aborted(cause?: unknown): DOMException {
  return new DOMException('This operation was aborted', { name: 'AbortError', cause } as never);
}

const kinds: [string, unknown][] = [
  ['a plain stop', undefined],
  ['an error', new TypeError('the error')],
  ['a clean stop', new OutOfRangeError('drained')],
  ['a primitive', 'the reason'],
  ['NaN', Number.NaN],
  ['-0', -0],
  ['a plain object', { reason: 5 }],
];

/** Operations that use a signal, and reject when it aborts. */
const echoing: [string, (signal: AbortSignal) => Promise<unknown>][] = [
  ['a timer', (signal) => sleep(1e6, undefined, { signal })],
  ['events.once', (signal) => once(new EventEmitter(), 'never', { signal })],
  [
    'something that throws the reason itself, as fetch does',
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  ],
  [
    'something that follows another signal',
    (signal) => {
      const following = AbortSignal.any([signal, new AbortController().signal]);
      return sleep(1e6, undefined, { signal: following });
    },
  ],
  [
    'an AbortError around an AbortError around the reason',
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(aborted(aborted(signal.reason))));
      }),
  ],
];

describe.each(kinds)('echoes of %s', (_, error) => {
  it.each(echoing)('of %s are not errors', async (_name, use) => {
    const coord = new Coordinator();
    const reporters = [
      async (echo: unknown) => coord.requestStop(echo),
      (echo: unknown) => coord.stopOnException(() => Promise.reject(echo)),
      async (echo: unknown) => coord.registerThread(Promise.reject(echo)),
      (echo: unknown) => coord.start(() => Promise.reject(echo)),
    ];
    const uses = reporters.map(() => rejection(use(coord.signal)));
    coord.requestStop(error);
    const record = coord.stopRecord;
    for (const [i, echo] of (await Promise.all(uses)).entries()) {
      expect(echo).toBeDefined();
      await reporters[i]?.(echo);
    }
    await coord.join().catch(() => {});
    expect(coord.stopRecord).toEqual(record);
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });

  it('the recorded error itself, reported again, is not a new error', () => {
    const coord = new Coordinator();
    coord.requestStop(error);
    for (let i = 0; i < 3; i++) coord.requestStop(error);
    expect(coord.stopRecord?.suppressed).toEqual([]);
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });

  it('in another thread, and back from it, they are not new errors', async () => {
    const coord = new Coordinator();
    coord.requestStop(error);
    await there.report(coord, ({ coord: attached }) => attached.signal.reason);
    await there.report(coord, ({ coord: attached }) => attached.stopRecord?.error);
    await there.report(coord, ({ coord: attached }) => {
      const cause = { name: 'AbortError', cause: attached.signal.reason };
      return new DOMException('wrapped', cause as never);
    });
    await there.report(coord, ({ coord: attached }) => {
      const wrapped = new Error('wrapped', { cause: attached.signal.reason });
      wrapped.name = 'AbortError';
      return wrapped;
    });
    expect(coord.stopRecord?.suppressed).toEqual([]);
  });

  it.each(['timer', 'once', 'reason', 'recorded', 'nested'])(
    'a worker that dies of one (%s) has not failed',
    async (workerData) => {
      const coord = new Coordinator();
      const url = new URL('../fixtures/dying-worker.mjs', import.meta.url);
      const worker = coord.spawn(url, { workerData });
      const exited = new Promise((resolve) => worker.once('exit', resolve));
      await listening(coord);
      coord.requestStop(error);
      const record = coord.stopRecord;
      expect(await exited).toBe(1); // the worker died of the echo
      await coord.join().catch(() => {});
      expect(coord.stopRecord).toEqual(record);
      expect(coord.stopRecord?.suppressedCount).toBe(0);
    },
  );
});

/** Resolves when the worker has registered its task: then it listens to the signal. */
async function listening(coord: Coordinator): Promise<void> {
  while (!coord.threads.some(({ name }) => name === 'listening')) {
    await turn();
  }
}

describe('errors that are no echo', () => {
  it('an AbortError of something else, an error with the reason as its cause, an equal one', () => {
    const error = new TypeError('the error');
    const coord = new Coordinator();
    coord.requestStop(error);
    const others = [
      aborted(),
      aborted(new TypeError('the error')),
      new Error('not an AbortError', { cause: error }),
      new TypeError('the error'),
      'the error',
      undefined,
    ];
    for (const other of others) {
      coord.stopOnException((): void => {
        throw other;
      });
    }
    expect(coord.stopRecord?.suppressed.map((each) => each.error)).toEqual(others);
    for (const [i, { error: kept }] of (coord.stopRecord?.suppressed ?? []).entries()) {
      expect(kept).toBe(others[i]);
    }
  });

  it('0 and -0 are two values', () => {
    const coord = new Coordinator();
    coord.requestStop(0);
    coord.requestStop(-0);
    coord.requestStop(0);
    expect(coord.stopRecord?.suppressed.map(({ error }) => error)).toEqual([-0]);
  });

  it('a cycle of causes is followed once around', () => {
    const first = aborted();
    const second = aborted(first);
    Object.defineProperty(first, 'cause', { value: second });
    const coord = new Coordinator();
    coord.requestStop();
    coord.requestStop(first);
    expect(coord.stopRecord?.suppressedCount).toBe(1);
  });

  it('a worker that dies of an error of its own is told of', async () => {
    const coord = new Coordinator();
    const url = new URL('../fixtures/dying-worker.mjs', import.meta.url);
    coord.spawn(url, { workerData: 'ofItsOwn', name: 'W' });
    await listening(coord);
    coord.requestStop();
    await coord.join();
    expect(coord.stopRecord).toMatchObject({
      kind: 'plain',
      suppressedCount: 1,
      suppressed: [
        {
          error: new TypeError('of its own'),
          requester: { via: 'worker-exit', threadName: 'W' },
        },
      ],
    });
  });

  it('the first 16 are kept, and all are counted', () => {
    const coord = new Coordinator();
    coord.requestStop();
    const errors = Array.from({ length: 40 }, (_, i) => new Error(`${i}`));
    for (const error of errors) coord.requestStop(error);
    const { suppressed = [], suppressedCount } = coord.stopRecord ?? {};
    expect(suppressedCount).toBe(40);
    expect(suppressed).toHaveLength(16);
    for (const [i, { error, requester, at }] of suppressed.entries()) {
      expect(error).toBe(errors[i]);
      expect(requester).toMatchObject({ language: 'js', via: 'call', threadName: 'main' });
      expect(at).toBeInstanceOf(Date);
    }
    coord.clearStop();
    coord.requestStop();
    expect(coord.stopRecord).toMatchObject({ suppressed: [], suppressedCount: 0 });
  });
});

describe('the echo of a stop that was cleared', () => {
  const lateEchoes = async (reason: unknown): Promise<Coordinator> => {
    const coord = new Coordinator();
    const late = [
      sleep(1e6, undefined, { signal: coord.signal }),
      once(new EventEmitter(), 'x', coord),
    ];
    const echoes = late.map(rejection);
    coord.requestStop(reason);
    coord.clearStop();
    const settled = await Promise.all(echoes);
    for (const echo of settled) coord.requestStop(echo);
    return coord;
  };

  it.each(kinds.filter(([, error]) => Object(error) === error || error === undefined))(
    'comes late, and does not stop the new life: %s',
    async (_, error) => {
      expect((await lateEchoes(error)).stopRecord).toBeUndefined();
    },
  );

  it('of a primitive cannot be told from anybody else, and is an error', async () => {
    const coord = await lateEchoes('the reason');
    expect(coord.stopRecord).toMatchObject({ kind: 'error', error: { cause: 'the reason' } });
  });

  it('nor does that of a cleared stop that another thread heard', async () => {
    const coord = new Coordinator();
    const error = new TypeError('the error');
    coord.requestStop(error);
    await there.see(coord, (_, { coord: attached }) => {
      Object.assign(globalThis, { reason: attached.signal.reason });
    });
    coord.clearStop();
    await there.report(coord, () => {
      const cause = { name: 'AbortError', cause: (globalThis as { reason?: unknown }).reason };
      return new DOMException('late', cause as never);
    });
    expect(coord.stopRecord).toBeUndefined();
  });

  it('the error itself, reported again, is a new stop with the same error', () => {
    const coord = new Coordinator();
    const error = new TypeError('the error');
    coord.requestStop(error);
    coord.clearStop();
    coord.requestStop(error);
    expect(coord.stopRecord).toMatchObject({ kind: 'error', suppressedCount: 0 });
    expect(coord.stopRecord?.error).toBe(error);
  });
});

describe('a fetch that the stop ends', () => {
  // undici calls Error.captureStackTrace(signal.reason), which here is the error of the stop.
  it.each([
    ['JavaScript', (coord: Coordinator, error: Error) => coord.requestStop(error), /echoes\.test/],
    [
      'native code',
      (coord: Coordinator) => addon.call(coord, 'requestStopError', 'Lost'),
      /a native thread/,
    ],
  ])(
    'leaves the stack of an error of %s, where the program is given it',
    async (_, stop, place) => {
      const silent = createServer(() => {}).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const coord = new Coordinator();
      void coord.start(() => fetch(`http://127.0.0.1:${port}/`, { signal: coord.signal }));
      await once(silent, 'request');
      stop(coord, new RangeError('the error'));
      const thrown = await rejection(coord.join());
      expect(thrown).toMatchObject({ stack: expect.stringMatching(place) });
      expect(thrown).not.toMatchObject({ stack: expect.stringContaining('undici') });
      expect(coord.signal.reason).toBe(thrown);
      silent.closeAllConnections();
      silent.close();
    },
  );
});

describe('whoever is told of a stop', () => {
  // A native thread requests the stop, and this event loop has not turned since.
  it.each<[string, (coord: Coordinator) => unknown]>([
    ['waitForStop()', (coord) => coord.waitForStop()],
    ['waitForStop(0)', (coord) => coord.waitForStop(0)],
    ['waitForStopSync()', (coord) => coord.waitForStopSync()],
    ['waitForStopSync(0)', (coord) => coord.waitForStopSync(0)],
  ])('by %s finds the signal aborted, and its reason', async (_, wait) => {
    const coord = new Coordinator();
    const { signal } = coord;
    addon.call(coord, 'requestStop');
    expect(signal.aborted).toBe(false);
    const told = wait(coord);
    expect(signal.reason).toMatchObject({ name: 'AbortError' });
    expect(await told).toBe(true);
  });
});

describe('echoes after a join', () => {
  it('the recorded error is thrown at whoever reports it, as any other', async () => {
    const error = new TypeError('the error');
    const coord = new Coordinator();
    coord.requestStop(error);
    await expect(coord.join()).rejects.toBe(error);
    expect(() => coord.requestStop(error)).toThrow(error);
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });
});
