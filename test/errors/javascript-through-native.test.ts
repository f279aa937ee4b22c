/** Errors of JavaScript that are thrown through C++ (Napi::Error of node-addon-api). */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Coordinator, NativeError } from 'allstop';
import { describe, expect, it } from 'vitest';

type Thrower = Record<
  'stopOnException' | 'fail' | 'throwOnThread',
  (coord: Coordinator, fn: () => void) => void
>;
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

it('reaches another thread with class, fields and cause', async () => {
  const coord = new Coordinator();
  const code = `
    const { workerData } = require('node:worker_threads');
    const thrower = require(workerData.path);
    import(workerData.allstop).then(({ Coordinator }) => {
      thrower.stopOnException(Coordinator.attach(workerData.handle), () => {
        throw Object.assign(new TypeError('no', { cause: new RangeError('why') }), { at: new Map([[1, 2n]]) });
      });
    });`;
  const allstop = new URL('../../dist/index.js', import.meta.url).href;
  const worker = new Worker(code, {
    eval: true,
    workerData: { path, allstop, handle: coord.handle },
  });
  await once(worker, 'exit');
  const error: any = await coord.join().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: 'no', at: new Map([[1, 2n]]) });
  expect(error.cause).toBeInstanceOf(RangeError);
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
  const coord = new Coordinator();
  const code = `
    const { workerData } = require('node:worker_threads');
    const thrower = require(workerData.path);
    import(workerData.allstop).then(({ Coordinator }) => {
      for (let i = 0; i < 100; ++i) {
        thrower.stopOnException(new Coordinator(), () => { throw new Error('here'); });
      }
      Coordinator.attach(workerData.handle);
    });`;
  const allstop = new URL('../../dist/index.js', import.meta.url).href;
  for (let round = 0; round < 3; ++round) {
    const worker = new Worker(code, {
      eval: true,
      workerData: { path, allstop, handle: coord.handle },
    });
    expect(await once(worker, 'exit')).toEqual([0]);
    for (let i = 0; i < 100; ++i) {
      thrower.stopOnException(new Coordinator(), () => {
        throw new Error('elsewhere');
      });
    }
  }
});
