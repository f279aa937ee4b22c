/** Errors of JavaScript that are thrown through C++ (Napi::Error of node-addon-api). */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Coordinator, NativeError } from 'allstop';
import { describe, expect, it } from 'vitest';

type Thrower = Record<
  'stopOnException' | 'fail' | 'throwOnThread' | 'wrap',
  (coord: Coordinator, fn: () => void) => void
> & {
  throwKept(coord: Coordinator): void;
  pass(from: Coordinator, to: Coordinator): void;
  postRegistered(coord: Coordinator, fn: () => void, isClosed?: boolean): void;
  causesOf(coord: Coordinator): string[];
};
const path = fileURLToPath(
  new URL('../addons/test-addon/build/Release/thrower.node', import.meta.url),
);
const thrower: Thrower = createRequire(import.meta.url)(path);

class DiskError extends Error {
  readonly sectors = new Map([[7, 'bad']]);
}

describe.each(['stopOnException', 'fail'] as const)('an error of JavaScript in %s', (way) => {
  it('is the error of the stop, itself', async () => {
    const coord = new Coordinator();
    const error = new DiskError('cannot read', { cause: new RangeError('sector 7') });
    thrower[way](coord, () => {
      throw error;
    });
    expect(await coord.join().catch((thrown: unknown) => thrown)).toBe(error);
    expect(coord.stopRecord?.requester.via).toBe('exception');
  });

  it('is an echo when it is the stop’s', () => {
    const coord = new Coordinator();
    coord.requestStop();
    thrower[way](coord, () => coord.signal.throwIfAborted());
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });
});

const nestedDisk = (): never => {
  throw new DiskError('cannot read', { cause: new RangeError('sector 7') });
};

/** A worker that has `thrower`, `Coordinator` and `coord`. */
function workerWith(coord: Coordinator, code: string): Worker {
  const preamble = `
    const { workerData, parentPort } = require('node:worker_threads');
    const thrower = require(workerData.path);
    import(workerData.allstop).then(({ Coordinator }) => {
      const coord = Coordinator.attach(workerData.handle);
      ${code}
    });`;
  const allstop = new URL('../../dist/index.js', import.meta.url).href;
  return new Worker(preamble, {
    eval: true,
    workerData: { path, allstop, handle: coord.handle },
  });
}

describe('posted calls that are registered', () => {
  it('have all run when a join ends', async () => {
    const coord = new Coordinator();
    const ran: number[] = [];
    thrower.postRegistered(coord, () => ran.push(ran.length));
    expect(ran).toEqual([]);
    await coord.join();
    expect(ran).toEqual([0, 1]);
  });

  it.each([
    ['in the queue of a worker that ends', '() => {}, false'],
    ['when a worker ends after the first', '() => process.exit(), false'],
    ['that are refused', '() => {}, true'],
  ])('are an error when they are lost: %s', async (_, given) => {
    const coord = new Coordinator();
    const ends = given.includes('exit') ? '' : 'process.exit();';
    const worker = workerWith(coord, `thrower.postRegistered(coord, ${given}); ${ends}`);
    await once(worker, 'exit');
    await expect(coord.join()).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining('has not run to its end'),
    });
  });
});

it('is the cause of the exception in which C++ has nested it', async () => {
  const coord = new Coordinator();
  thrower.wrap(coord, nestedDisk);
  const error: any = await coord.join().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: 'the scan has failed' });
  expect(error.cause).toBeInstanceOf(DiskError);
  expect(error.cause.sectors.get(7)).toBe('bad');
  expect(thrower.causesOf(coord)).toEqual(['cannot read', 'sector 7']);
});

it('is itself also in a context of its own, where Jest runs each test file', async () => {
  const worker = new Worker(new URL('../fixtures/contexts-worker.mjs', import.meta.url), {
    execArgv: ['--experimental-vm-modules', '--no-warnings'],
    workerData: { path, allstop: new URL('../../dist/index.js', import.meta.url).href },
  });
  expect(await once(worker, 'message')).toEqual([[true, true]]);
  await once(worker, 'exit');
});

it('keeps its causes when C++ passes it on', () => {
  const one = new Coordinator();
  const other = new Coordinator();
  thrower.stopOnException(one, nestedDisk);
  thrower.pass(one, other);
  expect(thrower.causesOf(other)).toEqual(['sector 7']);
});

it.each(['lives', 'has ended'])('of a thread that %s is not read on another one', async (state) => {
  const coord = new Coordinator();
  const worker = workerWith(
    coord,
    `thrower.keep(() => { throw new Error('of the worker'); });
    parentPort.once('message', () => parentPort.close());
    parentPort.postMessage('kept');`,
  );
  await once(worker, 'message');
  const ended = once(worker, 'exit');
  if (state === 'has ended') {
    worker.postMessage('end');
    await ended;
  }
  thrower.throwKept(coord);
  const error: any = await coord.join().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NativeError);
  expect(error.nativeType).toBe('Napi::Error');
  worker.postMessage('end');
  await ended;
});

it('is thrown on where there is no coordinator', async () => {
  const worker = workerWith(
    new Coordinator(),
    `try {
      thrower.stopOnException(undefined, () => { throw new TypeError('of JavaScript'); });
    } catch (error) {
      parentPort.postMessage(error);
    }`,
  );
  expect(await once(worker, 'message')).toEqual([new TypeError('of JavaScript')]);
});

it('that a posted function throws is an uncaught exception of its thread', async () => {
  const failed = (code: string): Promise<unknown> =>
    once(workerWith(new Coordinator(), code), 'error').then(([error]) => error);
  expect(await failed(`thrower.post(() => { throw new TypeError('of JavaScript'); });`)).toEqual(
    new TypeError('of JavaScript'),
  );
  expect(await failed(`thrower.post(() => {}, 'of C++');`)).toEqual(new Error('of C++'));
  expect(await failed(`thrower.post(() => {}, 'quiet');`)).toEqual(
    new Error('an exception whose what() is null'),
  );
  const both = `process.on('uncaughtException', (error) => {
      (globalThis.errors ??= []).push(error.message);
      if (globalThis.errors.length === 2) throw new Error(globalThis.errors.join(', '));
    });
    thrower.post(() => { throw new TypeError('of JavaScript'); }, 'of C++', true);`;
  expect(await failed(both)).toEqual(new Error('of JavaScript, of C++'));
});

it('reaches another thread with class, fields and cause', async () => {
  const coord = new Coordinator();
  const worker = workerWith(
    coord,
    `thrower.stopOnException(coord, () => {
      throw Object.assign(new TypeError('no', { cause: new RangeError('why') }), { at: new Map([[1, 2n]]) });
    });`,
  );
  await once(worker, 'exit');
  const error: any = await coord.join().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: 'no', at: new Map([[1, 2n]]) });
  expect(error.cause).toBeInstanceOf(RangeError);
});

it('says that its thread was ended, if a worker ends in the call', async () => {
  const coord = new Coordinator();
  const code = "thrower.stopOnException(coord, () => { parentPort.postMessage('in'); for (;;); });";
  const worker = workerWith(coord, code);
  await once(worker, 'message');
  await worker.terminate();
  await expect(coord.join()).rejects.toMatchObject({
    nativeType: 'Napi::Error',
    message: 'the JavaScript thread was ended during this call',
  });
});

it('that a native thread throws is recorded by its type alone, and nobody reads it there', async () => {
  const coord = new Coordinator();
  thrower.throwOnThread(coord, () => {
    throw new DiskError('cannot read');
  });
  const error: any = await coord.join().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NativeError);
  expect(error.nativeType).toBe('Napi::Error');
});

it('does no harm when its thread has ended, however many fail later', async () => {
  const fail = `for (let i = 0; i < 100; ++i) {
    thrower.stopOnException(new Coordinator(), () => { throw new Error('here'); });
  }`;
  for (let round = 0; round < 3; ++round) {
    expect(await once(workerWith(new Coordinator(), fail), 'exit')).toEqual([0]);
    for (let i = 0; i < 100; ++i) {
      thrower.stopOnException(new Coordinator(), () => {
        throw new Error('elsewhere');
      });
    }
  }
});
