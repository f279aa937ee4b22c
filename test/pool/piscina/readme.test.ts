/**
 * The examples of Piscina's README (github.com/piscinajs/piscina at 4e9791f, 4.6.1), restated on
 * `run`. README.md beside this file has the table of what holds and what differs.
 */

import { BroadcastChannel } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { pool, sharedWords, written } from './pools.ts';

describe('of the README of Piscina', () => {
  it('holds: Example: run() with an object gives the sum', async () => {
    expect(await pool().run('add', [{ a: 4, b: 6 }])).toBe(10);
  });

  it('holds: Example: the worker may be an async function', async () => {
    expect(await pool().run('addLater', [{ a: 4, b: 6 }])).toBe(10);
  });

  it('holds: Exporting multiple worker functions', async () => {
    const cluster = pool();
    const task = { a: 4, b: 6 };
    const results = [cluster.run('add', [task]), cluster.run('multiply', [task])];
    expect(await Promise.all(results)).toEqual([10, 24]);
  });

  it('holds: Cancelable Tasks, by an AbortController', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const task = pool().run('addLater', [{ a: 4, b: 6 }], { signal });
    controller.abort();
    await expect(task).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });

  it('differs: Cancelable Tasks, by an EventEmitter: it is refused', async () => {
    const { EventEmitter } = await import('node:events');
    const signal = new EventEmitter() as never;
    await expect(pool().run('add', [{ a: 4, b: 6 }], { signal })).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
  });

  it('holds: Delaying Availability of Workers, by `setup`', async () => {
    const cluster = pool({ setup: 'initialize' });
    expect(await cluster.run('addInitialized', [{ a: 4, b: 6 }])).toBe(110);
  });

  it('holds: Backpressure, by `map`, which reads the stream as there is room', async () => {
    let ahead = 0;
    let furthest = 0;
    async function* stream(): AsyncGenerator<{ a: number; b: number }> {
      for (let a = 0; a < 100; a++) {
        furthest = Math.max(furthest, ++ahead);
        yield { a, b: 1 };
      }
    }
    const sums: unknown[] = [];
    for await (const sum of pool().map('add', stream(), { concurrency: 4 })) {
      ahead--;
      sums.push(sum);
    }
    expect(sums).toEqual(Array.from({ length: 100 }, (_, a) => a + 1));
    expect(furthest).toBeLessThanOrEqual(5);
  });

  it('differs: Out of scope asynchronous code runs on, without another call', async () => {
    const words = sharedWords();
    expect(await pool().run('addAndGoOn', [{ a: 4, b: 6 }, words])).toBe(10);
    await written(words);
  });

  it('holds: Broadcast a message to all worker threads', async () => {
    const cluster = pool({ workers: 2 });
    const channel = new BroadcastChannel('my_channel');
    const listening = ['thread 1', 'thread 2'].map((name) => {
      let result: Promise<unknown>;
      const begun = new Promise((onProgress) => {
        result = cluster.run('listen', [name], { onProgress });
      });
      return { begun, result: result! };
    });
    await Promise.all(listening.map(({ begun }) => begun));
    channel.postMessage('Main thread message');
    expect(await Promise.all(listening.map(({ result }) => result))).toEqual([
      'thread 1 Received from:Main thread message',
      'thread 2 Received from:Main thread message',
    ]);
    channel.close();
  });
});
