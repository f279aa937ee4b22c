// The call site of a stop is determined after all waiting threads have been woken. A thread that
// reads `requester` before that waits for it. Meanwhile code of the program may run: its
// Error.prepareStackTrace (source maps).

import { Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { afterEach, describe, expect, it } from 'vitest';
import { addon } from '../support/test-addon.ts';

const { prepareStackTrace } = Error;

afterEach(() => {
  if (prepareStackTrace) Error.prepareStackTrace = prepareStackTrace;
  else Reflect.deleteProperty(Error, 'prepareStackTrace');
});

/** Stops `coord` while `format` is the program's formatter of stacks, which is called once. */
function stopWithFormatter(coord: Coordinator, format: () => unknown): void {
  let formatting = false;
  Error.prepareStackTrace = (error, sites) => {
    if (formatting) return `${error}\n    ${sites.map(String).join('\n    ')}`;
    formatting = true;
    return format();
  };
  coord.requestStop();
}

describe('the call site', () => {
  it('is the line that asked, and what called it', () => {
    const coord = new Coordinator();
    function cancelEverything(): void {
      coord.requestStop();
    }
    cancelEverything();
    const lines = coord.stopRecord?.requester.stack?.split('\n');
    expect(lines?.[0]).toMatch(/at cancelEverything \(.*call-site\.test\.ts:\d+:\d+\)/);
    expect(lines?.[1]).toMatch(/call-site\.test\.ts/);
  });

  it('is there for a native thread and for a worker that the stop has just woken', async () => {
    const look = `
      const { parentPort, workerData } = require('node:worker_threads');
      import('allstop').then(({ Coordinator }) => {
        const coord = Coordinator.attach(workerData);
        parentPort.postMessage('waiting');
        coord.waitForStopSync();
        parentPort.postMessage(coord.stopRecord.requester.stack);
      });`;
    for (let round = 0; round < 10; round++) {
      const coord = new Coordinator();
      const worker = new Worker(look, { eval: true, workerData: coord.handle });
      const next = (): Promise<unknown> =>
        new Promise((resolve) => {
          worker.once('message', resolve);
        });
      expect(await next()).toBe('waiting');
      addon.startUnregistered(coord, 'describe', `reader ${round}`);
      const stack = next();
      coord.requestStop();
      expect(await stack).toMatch(/call-site\.test\.ts/);
      expect(addon.result(`reader ${round}`)).toMatch(/main/);
    }
  });
});

describe("a program's own formatter of stacks", () => {
  it('runs when everybody has been woken', () => {
    const coord = new Coordinator();
    addon.startUnregistered(coord, 'wait', 'woken before');
    let woken: string | undefined;
    stopWithFormatter(coord, () => {
      woken = addon.result('woken before'); // would never return if the thread were still waiting
      return 'Error\n    at formatted';
    });
    expect(woken).toBe('stopped');
    expect(coord.stopRecord?.requester.stack).toBe('    at formatted');
    expect(Date.now() - Number(coord.stopRecord?.requestedAt)).toBeLessThan(60_000);
  });

  it('may look at the coordinator: then nobody knows yet from where', () => {
    const coord = new Coordinator();
    let early: unknown;
    stopWithFormatter(coord, () => {
      early = coord.stopRecord;
      return 'Error\n    at formatted';
    });
    expect(early).toMatchObject({
      kind: 'plain',
      requester: { language: 'js', threadName: 'main' },
    });
    expect(early).not.toHaveProperty('requester.stack');
    expect(coord.stopRecord?.requester.stack).toBe('    at formatted');
  });

  it('may clear the stop, and request another', () => {
    const coord = new Coordinator();
    stopWithFormatter(coord, () => {
      coord.clearStop();
      coord.requestStop(new TypeError('another'));
      return 'Error\n    at formatted';
    });
    expect(coord.stopRecord?.error).toEqual(new TypeError('another'));
    expect(coord.stopRecord?.requester.stack).toMatch(/call-site\.test\.ts/);
  });

  it('may wait for a thread that looks at the record: that one gives up after a second', () => {
    const coord = new Coordinator();
    addon.startUnregistered(coord, 'describe', 'impatient');
    let seen: string | undefined;
    stopWithFormatter(coord, () => {
      seen = addon.result('impatient');
      return 'Error\n    at formatted';
    });
    expect(seen).toMatch(/main/);
    expect(coord.stopRecord?.requester.stack).toBe('    at formatted');
  });

  it.each([
    ['makes no text', () => []],
    [
      'throws',
      () => {
        throw new Error('no source map');
      },
    ],
  ])('keeps nobody from stopping when it %s', (_, format) => {
    const coord = new Coordinator();
    stopWithFormatter(coord, format);
    expect(coord.shouldStop()).toBe(true);
    expect(coord.stopRecord?.requester).toMatchObject({ threadName: 'main', via: 'call' });
    expect(coord.stopRecord?.requester).not.toHaveProperty('stack');
  });
});

describe('a formatter that is slow', () => {
  it("does not delay the abort of another thread's signal", async () => {
    const FORMATTED = 0;
    const stopSlowly = `
      const { parentPort, workerData: { handle, words } } = require('node:worker_threads');
      import('allstop').then(({ Coordinator }) => {
        const coord = Coordinator.attach(handle);
        Error.prepareStackTrace = (error) => {
          Atomics.wait(words, 1, 0, 900);
          Atomics.store(words, ${FORMATTED}, 1);
          return String(error);
        };
        parentPort.once('message', () => coord.requestStop());
        parentPort.postMessage('ready');
      });`;
    const coord = new Coordinator();
    const words = new Int32Array(new SharedArrayBuffer(8));
    const aborted = new Promise<number>((resolve) => {
      coord.signal.addEventListener('abort', () => resolve(Atomics.load(words, FORMATTED)));
    });
    const worker = new Worker(stopSlowly, {
      eval: true,
      workerData: { handle: coord.handle, words },
    });
    await new Promise((resolve) => {
      worker.once('message', resolve);
    });
    worker.postMessage('stop');
    expect(await aborted).toBe(0);
    expect(coord.signal.reason).toMatchObject({ name: 'AbortError' });
    await worker.terminate();
  });
});

describe('a formatter that throws', () => {
  const formatNothing = (): never => {
    throw new Error('no stacks');
  };

  it('keeps the error of another JavaScript thread from nobody', async () => {
    const fail = `
      const { workerData } = require('node:worker_threads');
      import('allstop').then(({ Coordinator }) => {
        const cause = new TypeError('its cause');
        Coordinator.attach(workerData).requestStop(new RangeError('of a worker', { cause }));
      });`;
    const coord = new Coordinator();
    const worker = new Worker(fail, { eval: true, workerData: coord.handle });
    Error.prepareStackTrace = formatNothing;
    await coord.waitForStop();
    const error = await coord.join().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({
      message: 'of a worker',
      stack: expect.stringContaining('at '),
      cause: { name: 'TypeError', message: 'its cause' },
    });
    await worker.terminate();
  });

  it('keeps the error of a native thread from nobody', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'throw', `${coord.name} T`, 'from C++');
    Error.prepareStackTrace = formatNothing;
    addon.openGate(`${coord.name} T`);
    const error = await coord.join().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      message: 'from C++',
      stack: expect.stringContaining('at a native thread'),
    });
  });
});
