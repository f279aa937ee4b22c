/**
 * Cases of Piscina's test suite (github.com/piscinajs/piscina at 4e9791f, 4.6.1), restated on `run`:
 * the file and the name there, and what differs. README.md beside this file has them as a table.
 */

import { EventEmitter, getEventListeners, once } from 'node:events';
import { MessageChannel, threadId } from 'node:worker_threads';
import {
  CancelledError,
  ClusterCoordinator,
  FailedPreconditionError,
  LocalStrategy,
  transfer,
  UnavailableError,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { openAll, pool, rejection, sharedWords, written } from './pools.ts';

const threads = (cluster: ClusterCoordinator): number => cluster.workers.length;

describe('of simple-test.ts', () => {
  it('holds: Piscina instance is an EventEmitter', () => {
    expect(pool()).toBeInstanceOf(EventEmitter);
  });

  it('holds: trivial eval() handler works', async () => {
    expect(await pool().run('evaluate', ['42'])).toBe(42);
  });

  it('holds: async eval() handler works', async () => {
    expect(await pool().run('evaluate', ['Promise.resolve(42)'])).toBe(42);
  });

  it('differs: filename can be provided while posting: a pool has one module', async () => {
    const options = { filename: 'eval.js' } as never;
    const error = await rejection(pool().run('evaluate', ['42'], options));
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' });
  });

  it('holds: filename must be provided: the module, when the strategy is made', () => {
    expect(() => new LocalStrategy({} as never)).toThrow(TypeError);
  });

  it('holds: passing env to workers works', async () => {
    const cluster = pool({ env: { A: 'foo' } });
    expect(await cluster.run('evaluate', ['({...process.env})'])).toEqual({ A: 'foo' });
  });

  it('holds: passing argv to workers works', async () => {
    const cluster = pool({ argv: ['a', 'b', 'c'] });
    expect(await cluster.run('evaluate', ['process.argv.slice(2)'])).toEqual(['a', 'b', 'c']);
  });

  it('holds: passing execArgv to workers works', async () => {
    const cluster = pool({ execArgv: ['--no-warnings'] });
    expect(await cluster.run('evaluate', ['process.execArgv'])).toEqual(['--no-warnings']);
  });

  it('holds: passing valid workerData works', async () => {
    await pool({ workerData: 'ABC' }).run('hasWorkerData');
  });

  it('holds: passing invalid workerData does not work', () => {
    const workerData = { hello() {} };
    expect(() => pool({ workerData })).toThrow(/could not be cloned/);
  });

  it('holds: duration and utilization calculations work', async () => {
    const cluster = pool();
    expect(cluster.stats().utilization).toBe(0);
    const codes = ['42', '41', '40'];
    await Promise.all(codes.map((code) => cluster.run('evaluate', [code])));
    const { utilization } = cluster.stats();
    expect(utilization).toBeGreaterThan(0);
    expect(utilization).toBeLessThan(1);
  });

  it('holds: named tasks work', async () => {
    const cluster = pool();
    expect(await cluster.run('a')).toBe('a');
    expect(await cluster.run('b')).toBe('b');
  });
});

describe('of abort-task.ts', () => {
  it('holds: tasks can be aborted through AbortController while running', async () => {
    const words = sharedWords();
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const task = rejection(pool({}, { cancelGraceMs: 0 }).run('notifyThenSleep', [words], options));
    await written(words);
    controller.abort();
    expect(await task).toBe(controller.signal.reason);
  });

  it('differs: … with a reason: the error is the reason, not an error with that cause', async () => {
    const words = sharedWords();
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const task = rejection(pool({}, { cancelGraceMs: 0 }).run('notifyThenSleep', [words], options));
    await written(words);
    const reason = new Error('custom reason');
    controller.abort(reason);
    expect(await task).toBe(reason);
  });

  it('holds: tasks can be aborted before running', async () => {
    const cluster = pool();
    await cluster.ready();
    const first = sharedWords();
    const task = cluster.run('waitForNotify', [first]);
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const aborted = rejection(cluster.run('waitForNotify', [sharedWords()], options));
    controller.abort();
    expect(await aborted).toBe(controller.signal.reason);
    openAll(first);
    await task;
  });

  it('differs: abortable tasks share workers; what shared one runs again', async () => {
    const cluster = pool({ concurrency: 2 }, { cancelGraceMs: 0 });
    await cluster.ready();
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const aborted = rejection(cluster.run('evaluate', ['while(true);'], options));
    const task = cluster.run('evaluate', ['42']);
    controller.abort();
    expect(await aborted).toBe(controller.signal.reason);
    expect(await task).toBe(42);
  });

  it('holds: aborted AbortSignal rejects task immediately, and nothing is moved', async () => {
    const data = new Uint8Array(4);
    const signal = AbortSignal.abort();
    const moved = transfer(data, [data.buffer]);
    expect(await rejection(pool().run('move', [moved], { signal }))).toBe(signal.reason);
    expect(data).toHaveLength(4);
  });

  it('holds: task with AbortSignal cleans up properly', async () => {
    const { signal } = new AbortController();
    await pool().run('evaluate', ['1+1'], { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('of post-task.ts', () => {
  it('holds: postTask() can transfer ArrayBuffer instances', async () => {
    const buffer = new ArrayBuffer(40);
    const cluster = pool();
    expect(await cluster.run('move', [transfer(buffer, [buffer])])).toHaveProperty(
      'byteLength',
      10,
    );
    expect(cluster.stats().completed).toBe(1);
    expect(buffer.byteLength).toBe(0);
  });

  it('holds: postTask() cannot clone build-in objects', async () => {
    const { port1, port2 } = new MessageChannel();
    expect(await rejection(pool().run('a', [{ port1 }]))).toBeInstanceOf(Error);
    port2.close();
  });

  it.each(['Promise.reject(new Error("foo"))', 'throw new Error("foo")'])(
    'holds: postTask() resolves with a rejection when the handler rejects, or throws: %s',
    async (code) => {
      await expect(pool().run('evaluate', [code])).rejects.toThrow('foo');
    },
  );

  it('holds: postTask() validates name, and abortSignal', async () => {
    const cluster = pool();
    expect(await rejection(cluster.run(42 as never, ['0']))).toBeInstanceOf(TypeError);
    const options = { signal: 42 as never };
    expect(await rejection(cluster.run('evaluate', ['0'], options))).toBeInstanceOf(TypeError);
  });

  it("differs: Piscina emits drain: the event is 'idle'", async () => {
    const cluster = pool();
    const idle = once(cluster, 'idle');
    await Promise.all([cluster.run('a'), cluster.run('a'), cluster.run('a')]);
    await idle;
    expect(cluster.stats()).toMatchObject({ queued: 0, inFlight: 0, completed: 3 });
  });
});

describe('of task-queue.ts', () => {
  it('holds: will put items into a task queue until they can run', async () => {
    const cluster = pool({ workers: { min: 2, max: 3 } });
    await cluster.ready();
    expect(threads(cluster)).toBe(2);
    const all = Array.from({ length: 4 }, sharedWords);
    const results = all.map((words) => cluster.run('waitUntilOpen', [words]));
    await eventually(() => cluster.workers.flatMap(({ calls }) => calls).length === 3);
    expect(threads(cluster)).toBe(3);
    expect(cluster.stats().queued).toBe(1);
    openAll(...all);
    await Promise.all(results);
    expect(cluster.stats().queued).toBe(0);
  });

  it('differs: items over the task queue limit wait for room, and are not rejected', async () => {
    const cluster = pool({}, { maxQueued: 1 });
    await cluster.ready();
    const all = Array.from({ length: 5 }, sharedWords);
    const results = all.map((words) => cluster.run('waitUntilOpen', [words]));
    openAll(...all);
    expect(await Promise.all(results)).toEqual(all.map(() => 'open'));
  });

  it('holds: tasks can share a Worker if requested', async () => {
    const cluster = pool({ concurrency: 2 });
    await cluster.ready();
    const all = [sharedWords(), sharedWords()] as const;
    const results = all.map((words) => cluster.run('waitUntilOpen', [words]));
    await eventually(() => cluster.workers[0]?.calls.length === 2);
    openAll(all[1]);
    expect(await results[1]).toBe('open'); // the first still waits there
    openAll(all[0]);
    expect(await results[0]).toBe('open');
  });
});

describe('of thread-count.ts and idle-timeout.ts', () => {
  it('holds: will start with minThreads and max out at maxThreads', async () => {
    const cluster = pool({ workers: { min: 2, max: 4 } }, { cancelGraceMs: 0 });
    await cluster.ready();
    expect(threads(cluster)).toBe(2);
    const spinning = Array.from({ length: 5 }, () =>
      rejection(cluster.run('evaluate', ['for(;;);'])),
    );
    await eventually(() => cluster.workers.flatMap(({ calls }) => calls).length === 4);
    expect(threads(cluster)).toBe(4);
    await cluster.close();
    for (const error of await Promise.all(spinning)) expect(error).toBeInstanceOf(CancelledError);
  });

  it('holds: conflicting min/max threads is error', () => {
    expect(() => pool({ workers: { min: 16, max: 8 } })).toThrow(RangeError);
  });

  it("differs: thread count upon destruction: workers stay listed, as 'lost'", async () => {
    const cluster = pool({ workers: 2 });
    await cluster.ready();
    await cluster.close();
    expect(cluster.workers.map(({ state }) => state)).toEqual(['lost', 'lost']);
  });

  it('holds: idle timeout will let go of threads early', async () => {
    const cluster = pool({ workers: { min: 1, max: 2, idleMs: 50 } });
    const words = sharedWords();
    const both = (count: number): Promise<unknown[]> =>
      Promise.all([1, 2].map(() => cluster.run('waitForOthers', [words, count])));
    const early = await both(2);
    await eventually(() => threads(cluster) === 1);
    const late = await both(4);
    expect(new Set([...early, ...late]).size).toBe(3);
  });
});

describe('of pool-close.ts and pool-destroy.ts', () => {
  it('holds: queued tasks waits for all tasks to complete, by `drainMs`', async () => {
    const cluster = pool();
    await cluster.ready();
    const words = sharedWords();
    const tasks = [cluster.run('waitUntilOpen', [words]), cluster.run('a')];
    const closed = cluster.close({ drainMs: Number.POSITIVE_INFINITY });
    openAll(words);
    expect(await Promise.all(tasks)).toEqual(['open', 'a']);
    await closed;
  });

  it('holds: abort any task enqueued during closing up', async () => {
    const cluster = pool();
    const task = cluster.run('a');
    const closed = cluster.close({ drainMs: Number.POSITIVE_INFINITY });
    expect(await rejection(cluster.run('a'))).toBeInstanceOf(FailedPreconditionError);
    expect(await task).toBe('a');
    await closed;
  });

  it('differs: close({ force: true }): close() also cancels what runs', async () => {
    const cluster = pool({}, { cancelGraceMs: 0 });
    await cluster.ready();
    const tasks = [1, 2].map(() => rejection(cluster.run('evaluate', ['new Promise(() => {})'])));
    await cluster.close();
    for (const error of await Promise.all(tasks)) expect(error).toBeInstanceOf(CancelledError);
  });

  it('holds: timed out close operation destroys the pool', async () => {
    const cluster = pool({}, { cancelGraceMs: 0 });
    await cluster.ready();
    const tasks = [1, 2].map(() => rejection(cluster.run('waitForNotify', [sharedWords()])));
    await cluster.close({ drainMs: 10 });
    for (const error of await Promise.all(tasks)) expect(error).toBeInstanceOf(CancelledError);
  });

  it('holds: can destroy pool while tasks are running', async () => {
    const cluster = pool({}, { cancelGraceMs: 0 });
    await cluster.ready();
    const task = rejection(cluster.run('evaluate', ['while(1){}']));
    await cluster.close();
    expect(await task).toBeInstanceOf(CancelledError);
  });
});

describe('of test-resourcelimits.ts and test-uncaught-exception-from-handler.ts', () => {
  it('holds: resourceLimits causes task to reject, after `retries`', { tags: 'long' }, async () => {
    const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 };
    const error = await rejection(pool({ resourceLimits }).run('fillTheHeap', [], { retries: 0 }));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toMatch(/memory limit: JS heap out of memory/);
  });

  it('holds: uncaught exception resets Worker: an error that is thrown costs no worker', async () => {
    const cluster = pool();
    const first = await cluster.run('whichThread');
    await expect(cluster.run('evaluate', ['throw new Error("not_caught")'])).rejects.toThrow(
      'not_caught',
    );
    expect(await cluster.run('whichThread')).toBe(first);
  });

  it('holds: uncaught exception in immediate resets Worker, with `retries: 0`', async () => {
    const error = await rejection(pool().run('throwInImmediate', [], { retries: 0 }));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toContain('not_caught');
  });

  it("differs: uncaught exception in immediate after task: the event is 'workerLost'", async () => {
    const cluster = pool();
    const words = sharedWords();
    const lost = once(cluster, 'workerLost');
    expect(await cluster.run('dieLater', [words])).toBe(42);
    openAll(words);
    const [, error] = (await lost) as [unknown, Error];
    expect(error.message).toMatch(/died: not_caught$/);
  });

  it('holds: exiting process resets worker, with `retries: 0`', async () => {
    const cluster = pool();
    const original = await cluster.run('whichThread');
    const error = await rejection(cluster.run('evaluate', ['process.exit(1)'], { retries: 0 }));
    expect(error.message).toMatch(/exited with code 1/);
    const next = await cluster.run('whichThread');
    expect(new Set([original, next, threadId]).size).toBe(3);
  });

  it('differs: a task whose worker dies under it is run again, and does not fail', async () => {
    expect(await pool().run('exitOnce')).toBe(42);
  });
});

describe('of histogram.ts and messages.ts', () => {
  it('holds: pool will maintain run and wait time histograms by default', async () => {
    const cluster = pool();
    await Promise.all(Array.from({ length: 10 }, () => cluster.run('evaluate', ['42'])));
    const histogram = {
      p50: expect.any(Number),
      p90: expect.any(Number),
      p99: expect.any(Number),
      max: expect.any(Number),
    };
    expect(cluster.stats().functions['evaluate']).toMatchObject({
      completed: 10,
      waitMs: histogram,
      runMs: histogram,
    });
  });

  it('differs: Pool receive message from workers: they are progress of the call', async () => {
    const messages: unknown[] = [];
    const onProgress = (message: unknown): void => void messages.push(message);
    expect(await pool().run('say', ['some message'], { onProgress })).toBe(42);
    expect(messages).toEqual(['some message']);
  });
});
