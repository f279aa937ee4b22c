import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { turn } from '../../support/gate.ts';
import { addon } from '../../support/test-addon.ts';

describe('the flag', () => {
  it('is down at first and latches', () => {
    const coord = new Coordinator();
    expect(coord.shouldStop()).toBe(false);
    expect(coord.stopRecord).toBeUndefined();
    coord.requestStop();
    coord.requestStop();
    expect(coord.shouldStop()).toBe(true);
  });

  it('belongs to one coordinator', () => {
    const [one, other] = [new Coordinator(), new Coordinator()];
    one.requestStop();
    expect(other.shouldStop()).toBe(false);
  });

  it('is seen by a hot loop that polls it, when a native thread asks', () => {
    const coord = new Coordinator();
    addon.startUnregistered(coord, 'request', 'hot-loop');
    addon.openGate('hot-loop');
    let turns = 0;
    while (!coord.shouldStop()) turns++;
    expect(turns).toBeGreaterThanOrEqual(0);
    expect(addon.result('hot-loop')).toBe('0');
  });

  it('is polled by native threads', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'poll', 'poller');
    coord.requestStop();
    expect(addon.result('poller')).toBe('stopped');
    await coord.join();
  });

  it('keeps its own words apart when there are thousands of coordinators', () => {
    const coords = Array.from({ length: 1000 }, () => new Coordinator());
    for (let i = 0; i < coords.length; i += 3) coords[i]?.requestStop();
    expect(coords.map((coord) => coord.shouldStop())).toEqual(coords.map((_, i) => i % 3 === 0));
  });
});

describe('the record', () => {
  it('says who asked, from where, when, and how', () => {
    const before = Date.now();
    const coord = new Coordinator();
    coord.requestStop();
    const record = coord.stopRecord;
    expect(record).toMatchObject({
      kind: 'plain',
      suppressed: [],
      suppressedCount: 0,
      requester: { language: 'js', via: 'call', threadName: 'main', threadId: 0, pid: process.pid },
    });
    expect(record && 'error' in record).toBe(false);
    expect(record?.requestedAt.getTime()).toBeGreaterThanOrEqual(before);
    expect(record?.requester.stack).toContain('coordinator.test.ts');
    expect(record?.requester.stack).not.toContain('dist/coordinator.js');
  });

  it('has the errors of a native AggregateError: none', () => {
    const coord = new Coordinator();
    addon.start(coord, 'request-error', 'several', 'AggregateError|all failed|');
    addon.openGate('several');
    expect(coord.waitForStopSync()).toBe(true);
    expect(coord.stopRecord?.error).toBeInstanceOf(AggregateError);
    expect(coord.stopRecord?.error).toMatchObject({ message: 'all failed', errors: [] });
  });

  it('names the native thread that asked', () => {
    const coord = new Coordinator();
    addon.start(coord, 'request-error', 'asker', 'OutOfRangeError|no more|');
    addon.openGate('asker');
    expect(coord.waitForStopSync()).toBe(true);
    expect(coord.stopRecord?.requester).toMatchObject({
      language: 'native',
      via: 'exception',
      threadName: 'asker',
    });
    expect(coord.stopRecord?.kind).toBe('clean');
    expect(coord.stopRecord?.error).toBeInstanceOf(OutOfRangeError);
  });

  it('keeps the first 16 later errors and counts all', () => {
    const coord = new Coordinator();
    coord.requestStop();
    for (let i = 0; i < 20; i++) coord.requestStop(new Error(`later ${i}`));
    coord.requestStop(); // not an error
    const { suppressed, suppressedCount } = coord.stopRecord ?? {};
    expect(suppressedCount).toBe(20);
    expect(suppressed?.map(({ error }) => (error as Error).message)).toEqual(
      Array.from({ length: 16 }, (_, i) => `later ${i}`),
    );
  });
});

describe('waitForStop', () => {
  it('resolves to true when a stop is requested', async () => {
    const coord = new Coordinator();
    const waits = [coord.waitForStop(), coord.waitForStop(1e12), coord.waitForStop(60_000)];
    coord.requestStop();
    expect(await Promise.all(waits)).toEqual([true, true, true]);
    expect(await coord.waitForStop()).toBe(true);
  });

  it('resolves to false when the time is over, never before', async () => {
    const coord = new Coordinator();
    const start = performance.now();
    expect(await coord.waitForStop(20)).toBe(false);
    expect(performance.now() - start).toBeGreaterThanOrEqual(20);
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    expect(await coord.waitForStop(0)).toBe(false);
    expect(turned).toBe(true); // a loop of looks starves nothing
  });

  it('is woken by a native thread', async () => {
    const coord = new Coordinator();
    addon.startUnregistered(coord, 'request', 'waker');
    const wait = coord.waitForStop();
    addon.openGate('waker');
    expect(await wait).toBe(true);
  });

  it('sees a stop that is cleared at once', async () => {
    const coord = new Coordinator();
    const wait = coord.waitForStop();
    coord.requestStop();
    coord.clearStop();
    expect(await wait).toBe(true);
    expect(await coord.waitForStop(0)).toBe(false);
  });

  it('does not see a stop that was cleared before it began', async () => {
    const coord = new Coordinator();
    const earlier = coord.waitForStop();
    addon.call(coord, 'requestStop'); // the doorbell has rung and this thread has not served it
    addon.call(coord, 'clearStop');
    expect(await coord.waitForStop(5)).toBe(false);
    expect(await earlier).toBe(true);
  });

  it('rejects with the reason of the signal', async () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    const wait = coord.waitForStop(60_000, { signal: controller.signal });
    controller.abort('enough');
    await expect(wait).rejects.toBe('enough');
    await expect(coord.waitForStop(1, { signal: controller.signal })).rejects.toBe('enough');
  });
});

describe('waitForStopSync', () => {
  it('polls, times out, and wakes', () => {
    const coord = new Coordinator();
    expect(coord.waitForStopSync(0)).toBe(false);
    expect(coord.waitForStopSync(5)).toBe(false);
    addon.startUnregistered(coord, 'request', 'sync-waker');
    addon.openGate('sync-waker');
    expect(coord.waitForStopSync()).toBe(true);
    expect(coord.waitForStopSync(0)).toBe(true);
  });

  it('waits for longer than a slice', () => {
    const coord = new Coordinator();
    const start = performance.now();
    expect(coord.waitForStopSync(120)).toBe(false);
    expect(performance.now() - start).toBeGreaterThanOrEqual(120);
  });
});

describe('stopOnException', () => {
  it('reports what is thrown, and swallows it', () => {
    const coord = new Coordinator();
    const error = new RangeError('thrown');
    const thrower = (): number => {
      throw error;
    };
    expect(coord.stopOnException(thrower)).toBeUndefined();
    expect(coord.stopRecord?.error).toBe(error);
    expect(coord.stopRecord?.requester.via).toBe('exception');
  });

  it('reports a rejection, and swallows it', async () => {
    const coord = new Coordinator();
    const error = new RangeError('rejected');
    expect(await coord.stopOnException(() => Promise.reject(error))).toBeUndefined();
    expect(coord.stopRecord?.error).toBe(error);
  });

  it('passes a normal end through, and changes nothing', async () => {
    const coord = new Coordinator();
    expect(coord.stopOnException(() => 7)).toBe(7);
    expect(await coord.stopOnException(async () => 8)).toBe(8);
    expect(coord.shouldStop()).toBe(false);
  });

  it('throws the error at its caller after a join', async () => {
    const coord = new Coordinator();
    await coord.join();
    const error = new RangeError('late');
    expect(() =>
      coord.stopOnException(() => {
        throw error;
      }),
    ).toThrow(error);
    await expect(coord.stopOnException(() => Promise.reject(error))).rejects.toBe(error);
    expect(coord.shouldStop()).toBe(false);
  });
});

describe('raiseRequestedException', () => {
  it('throws the recorded error, and does not clear it', () => {
    const coord = new Coordinator();
    coord.raiseRequestedException();
    const error = new RangeError('recorded');
    coord.requestStop(error);
    expect(() => coord.raiseRequestedException()).toThrow(error);
    expect(() => coord.raiseRequestedException()).toThrow(error);
    coord.clearStop();
    coord.raiseRequestedException();
  });

  it('throws nothing for a clean stop', () => {
    const coord = new Coordinator();
    coord.requestStop(new OutOfRangeError('the end'));
    coord.raiseRequestedException();
    expect(coord.shouldStop()).toBe(true);
  });
});

describe('the signal', () => {
  it('aborts before requestStop returns, with the recorded error', () => {
    const coord = new Coordinator();
    const { signal } = coord;
    expect(signal.aborted).toBe(false);
    expect(coord.signal).toBe(signal);
    const error = new RangeError('why');
    coord.requestStop(error);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe(error);
    expect(coord.signal).toBe(signal);
  });

  it('aborts with an AbortError for a plain stop, and names the clean error as its cause', () => {
    const plain = new Coordinator();
    plain.requestStop();
    expect(plain.signal.reason).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    const clean = new Coordinator();
    const error = new OutOfRangeError('the end');
    clean.requestStop(error);
    expect(clean.signal.reason).toMatchObject({ name: 'AbortError', cause: error });
  });

  it('aborts when it is read, or when the loop turns, if another thread asked', async () => {
    const coord = new Coordinator();
    const { signal } = coord;
    addon.call(coord, 'requestStop');
    expect(coord.signal.aborted).toBe(true);
    expect(signal.aborted).toBe(true);

    const other = new Coordinator();
    const aborted = new Promise((resolve) => other.signal.addEventListener('abort', resolve));
    addon.call(other, 'requestStop');
    await aborted;
  });

  it('is a fresh one after clearStop, and the old one stays aborted', () => {
    const coord = new Coordinator();
    const { signal } = coord;
    coord.requestStop();
    coord.clearStop();
    expect(coord.signal).not.toBe(signal);
    expect(coord.signal.aborted).toBe(false);
    expect(signal.aborted).toBe(true);
  });

  it('aborts though the stop was cleared before this thread could look', async () => {
    const coord = new Coordinator();
    const { signal } = coord;
    addon.call(coord, 'requestStopError', 'RangeError');
    addon.call(coord, 'clearStop');
    addon.call(coord, 'requestStopError', 'TypeError');
    while (!signal.aborted) await turn();
    expect(signal.reason).toBeInstanceOf(RangeError); // the first one
    expect(coord.signal).not.toBe(signal);
    expect(coord.signal.reason).toBeInstanceOf(TypeError);
  });

  it('calls listeners that request further stops', () => {
    const [one, other] = [new Coordinator(), new Coordinator()];
    one.signal.addEventListener('abort', () => {
      other.requestStop();
      expect(other.signal.aborted).toBe(true);
    });
    const { signal } = other;
    one.requestStop();
    expect(signal.aborted).toBe(true);
  });

  it('ends what is waited for with it, as an echo that stops nothing again', async () => {
    const coord = new Coordinator();
    const { setTimeout: sleep } = await import('node:timers/promises');
    const done = coord.start(() => sleep(1e6, undefined, { signal: coord.signal }));
    coord.requestStop();
    await done;
    expect(coord.stopRecord?.suppressedCount).toBe(0);
    await coord.join();
  });
});

describe('clearStop', () => {
  it('lets a late echo of the cleared stop stop nothing', async () => {
    const coord = new Coordinator();
    const { setTimeout: sleep } = await import('node:timers/promises');
    const done = coord.start(() => sleep(1e6, undefined, { signal: coord.signal }));
    coord.requestStop();
    coord.clearStop();
    await done;
    expect(coord.shouldStop()).toBe(false);
  });

  it('does not matter when nothing was there to clear', async () => {
    const coord = new Coordinator();
    const { signal } = coord;
    const wait = coord.waitForStop(5);
    coord.clearStop();
    expect(await wait).toBe(false);
    expect(coord.signal).toBe(signal);
  });
});

describe('handles', () => {
  it('are small, and attach to the same object in the same thread', () => {
    const coord = new Coordinator();
    expect(JSON.stringify(coord.handle).length).toBeLessThan(200);
    expect(Coordinator.attach(structuredClone(coord.handle))).toBe(coord);
  });

  it('attach in a worker', async () => {
    const coord = new Coordinator();
    const worker = new Worker(new URL('../../fixtures/attach-worker.mjs', import.meta.url), {
      workerData: { handle: coord.handle },
    });
    coord.registerThread(worker);
    expect(await coord.waitForStop()).toBe(true);
    await coord.join();
    expect(coord.stopRecord?.requester).toMatchObject({ language: 'js', threadId: 1 });
  });
});

describe('disposal', () => {
  it('stops and joins', async () => {
    const coord = new Coordinator();
    let seen = false;
    void coord.start(async () => {
      seen = await coord.waitForStop();
    });
    await coord[Symbol.asyncDispose]();
    expect([seen, coord.joined]).toEqual([true, true]);
  });

  it('rejects with the recorded error', async () => {
    const coord = new Coordinator();
    coord.requestStop(new RangeError('why'));
    await expect(coord[Symbol.asyncDispose]()).rejects.toThrow('why');
  });
});

describe('a coordinator as an object', () => {
  it('has a name', () => {
    expect(new Coordinator({ name: 'given' }).name).toBe('given');
    expect(new Coordinator().name).toMatch(/^coordinator-\d+$/);
  });

  it('can be inspected', () => {
    expect(inspect(new Coordinator())).toContain('Coordinator');
  });

  it('can be subclassed', () => {
    class Mine extends Coordinator {
      answer = 42;
    }
    const mine = new Mine({ name: 'mine' });
    expect(addon.status(mine)).toBe(0);
    expect(mine.answer).toBe(42);
  });
});

describe('a program that has put setters on Object.prototype', () => {
  it.each(['token', 'words', 'slot', 'id', 'name'])('%s: still makes coordinators', (key) => {
    // oxlint-disable-next-line no-extend-native -- the test is about such a program
    Object.defineProperty(Object.prototype, key, {
      configurable: true,
      set() {
        throw new Error('no such property, please');
      },
    });
    try {
      const coord = new Coordinator({ name: 'named' });
      coord.requestStop();
      expect([coord.shouldStop(), coord.child().shouldStop(), coord.name]).toEqual([
        true,
        true,
        'named',
      ]);
    } finally {
      Reflect.deleteProperty(Object.prototype, key);
    }
  });
});
