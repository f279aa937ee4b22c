// mirror: the stop in shared memory that the program has chosen.

import { once } from 'node:events';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { addon } from '../../support/test-addon.ts';

// The types of Node alone do not have WebAssembly.
type SharedMemory = { readonly buffer: SharedArrayBuffer; grow(pages: number): void };
const { Memory } = (globalThis as never as Record<'WebAssembly', { Memory: SharedMemoryClass }>)
  .WebAssembly;
type SharedMemoryClass = new (pages: {
  initial: number;
  maximum: number;
  shared: true;
}) => SharedMemory;

const sharedWords = (length = 4): Int32Array => new Int32Array(new SharedArrayBuffer(4 * length));

/** An array over the same memory, that says that it is longer. */
function longer({ buffer }: Int32Array): Int32Array {
  class Longer extends Int32Array {
    override get length(): number {
      return 1e9;
    }
  }
  return new Longer(buffer as ArrayBuffer);
}

describe('mirror', () => {
  it('stores 1 in the word at the stop, and nothing before or beside it', () => {
    const coord = new Coordinator();
    const words = sharedWords();
    coord.mirror(words, 2);
    expect([...words]).toEqual([0, 0, 0, 0]);
    coord.requestStop();
    expect([...words]).toEqual([0, 0, 1, 0]);
  });

  it('stores the value that it was given, in a view with an offset', () => {
    const coord = new Coordinator();
    const buffer = new SharedArrayBuffer(16);
    coord.mirror(new Int32Array(buffer, 8), 1, -(2 ** 31));
    coord.requestStop();
    expect([...new Int32Array(buffer)]).toEqual([0, 0, 0, -(2 ** 31)]);
  });

  it('stores at once if the coordinator is stopped already', () => {
    const coord = new Coordinator();
    coord.requestStop();
    const words = sharedWords();
    coord.mirror(words, 0, 7);
    expect(words[0]).toBe(7);
  });

  it('stores while the thread that made it is blocked, whichever thread requests the stop', () => {
    const coord = new Coordinator();
    const words = sharedWords();
    coord.mirror(words, 0, 2); // pyodide's interrupt buffer: 2 is SIGINT
    addon.start(coord, 'request', 'stopper');
    addon.openGate('stopper');
    // Native code stores and cannot notify: this thread polls in turns of the loop below.
    while (Atomics.load(words, 0) === 0) coord.waitForStopSync(1);
    expect(words[0]).toBe(2);
    addon.result('stopper');
  });

  it('wakes a thread in Atomics.wait: of a stop of its own thread, before requestStop() returns', async () => {
    const coord = new Coordinator();
    const words = sharedWords();
    coord.mirror(words, 0);
    const worker = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       parentPort.postMessage('waits');
       Atomics.store(workerData, 1, 1);
       parentPort.postMessage(Atomics.wait(workerData, 0, 0));`,
      { eval: true, workerData: words },
    );
    const exit = once(worker, 'exit'); // comes in one turn with the last message
    await once(worker, 'message');
    coord.requestStop();
    const [result] = await once(worker, 'message');
    expect(['ok', 'not-equal']).toContain(result);
    await exit;
  });

  it('follows the parent of its coordinator', () => {
    const parent = new Coordinator();
    const words = sharedWords();
    parent.child().mirror(words, 0);
    parent.requestStop();
    expect(words[0]).toBe(1);
  });

  it('is not undone by clearStop(), and stands for the next stop', () => {
    const coord = new Coordinator();
    const words = sharedWords();
    coord.mirror(words, 0);
    coord.requestStop();
    coord.clearStop();
    expect(words[0]).toBe(1);
    words[0] = 0;
    coord.requestStop();
    expect(words[0]).toBe(1);
  });

  it('stores nothing after its disposal, nor after that of the coordinator', async () => {
    const coord = new Coordinator();
    const words = sharedWords();
    const link = coord.mirror(words, 0);
    coord.mirror(words, 1);
    expect(coord.explain().links).toHaveLength(2);
    link[Symbol.dispose]();
    link[Symbol.dispose]();
    coord.requestStop();
    expect([...words]).toEqual([0, 1, 0, 0]);
    coord.clearStop();
    words.fill(0);
    await coord[Symbol.asyncDispose]();
    words.fill(0);
    coord.clearStop();
    coord.requestStop();
    expect([...words]).toEqual([0, 0, 0, 0]);
  });

  it('ends with the thread that made it', async () => {
    const coord = new Coordinator();
    const words = sharedWords();
    const worker = new Worker(new URL('../../fixtures/mirrors.mjs', import.meta.url), {
      workerData: { handle: coord.handle, words },
    });
    await once(worker, 'message');
    await worker.terminate();
    coord.requestStop();
    expect([...words]).toEqual([0, 0, 0, 0]);
    expect(coord.explain().links).toEqual([]);
  });

  it('stores in the memory of WebAssembly, also when that has grown', () => {
    const coord = new Coordinator();
    const memory = new Memory({ initial: 1, maximum: 3, shared: true });
    coord.mirror(new Int32Array(memory.buffer), 5, 3);
    memory.grow(2);
    coord.requestStop();
    expect(new Int32Array(memory.buffer)[5]).toBe(3);
  });

  it('takes the array of a subclass, and one of another realm', () => {
    const coord = new Coordinator();
    const words = sharedWords();
    coord.mirror(longer(words), 1);
    const others: Int32Array = runInNewContext('new Int32Array(new SharedArrayBuffer(4))');
    coord.mirror(others, 0);
    coord.requestStop();
    expect([words[1], others[0]]).toEqual([1, 1]);
  });

  it('refuses all but a word of shared memory and a value that fits', () => {
    const coord = new Coordinator();
    const mirror =
      (...args: unknown[]) =>
      () =>
        (coord.mirror as (...args: unknown[]) => Disposable)(...args);
    const words = sharedWords();
    const bad = [undefined, null, {}, [0], new Int32Array(4), new Uint32Array(words.buffer)];
    for (const value of [...bad, new BigInt64Array(new SharedArrayBuffer(8))]) {
      expect(mirror(value, 0)).toThrow(TypeError);
    }
    for (const index of [-1, 4, 0.5, Number.NaN]) expect(mirror(words, index)).toThrow(RangeError);
    expect(mirror(words)).toThrow(TypeError);
    for (const value of [2 ** 31, -(2 ** 31) - 1, 0.5]) {
      expect(mirror(words, 0, value)).toThrow(RangeError);
    }
    expect(mirror(sharedWords(0), 0)).toThrow(RangeError);
    expect(mirror(sharedWords(0), 0)).toThrow(
      'The value of "words" is out of range. It must be an array of at least 1 element. ' +
        'Received Int32Array(0) []',
    );
    // What an array says of itself does not count.
    expect(mirror(longer(words), 4)).toThrow(RangeError);
    const { buffer } = words;
    expect(
      mirror(Object.defineProperty(new Int32Array(4), 'buffer', { value: buffer }), 0),
    ).toThrow(TypeError);
    expect(coord.explain().links).toEqual([]);
    coord.requestStop();
    expect([...words]).toEqual([0, 0, 0, 0]);
  });
});
