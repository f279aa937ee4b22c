/**
 * Worker processes hear the stop, and the end of the program or of its thread, while their
 * functions compute.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once as emitted } from 'node:events';
import type { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type CallOptions,
  ClusterCoordinator,
  LocalStrategy,
} from '../../../dist/cluster/index.js';

const module = new URL('../../fixtures/cluster-computing.mjs', import.meta.url);
const clusters: ClusterCoordinator[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const cluster of clusters.splice(0)) await cluster.close();
});

type Call = [name: string, ...args: unknown[]];

/** The first value of an iterable. */
async function once(values: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of values) return;
}

/** A cluster of processes (the options are the first call's) in which functions compute. */
async function computing(...given: (Call | CallOptions)[]) {
  const calls = given.filter((each) => Array.isArray(each));
  const options = given.find((each): each is CallOptions => !Array.isArray(each));
  const strategy = new LocalStrategy({ module, workers: calls.length, isolation: 'process' });
  const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 20_000 });
  clusters.push(cluster);
  const begun: Promise<unknown>[] = [];
  const values = calls.map(([name, ...args], index) => {
    let onProgress = (_value: unknown): void => {};
    begun.push(new Promise((resolve) => (onProgress = resolve)));
    const own = index === 0 ? options : {};
    return cluster.run(name, args, { ...own, onProgress }) as Promise<any>;
  });
  await Promise.all(begun);
  return { cluster, values };
}

describe('a function that computes in a process', () => {
  it('sees the stop of the program, with its error', async () => {
    const { cluster, values } = await computing(['untilStopped'], ['untilStopped']);
    cluster.coordinator.requestStop(Object.assign(new TypeError('too hot'), { part: 3 }));
    for (const value of values) {
      expect(await value).toMatchObject({ message: 'too hot', part: 3, pid: process.pid });
    }
    expect(cluster.coordinator.stopRecord?.suppressed).toEqual([]);
  });

  it('sees the stop while the main thread of the program computes, too', async () => {
    const { cluster, values } = await computing(['untilStopped']);
    cluster.coordinator.stopAfter(20);
    const end = Date.now() + 400;
    while (Date.now() < end); // a native thread makes the stop, and a native thread sends it
    const { sawStopAt } = await values[0];
    expect(sawStopAt).toBeLessThan(end);
  });

  it('sees the stop of another process', async () => {
    const { cluster, values } = await computing(['untilStopped']);
    await cluster.resize(2);
    const stopping = cluster.run('stopNow', ['enough']).catch(() => {});
    expect(await values[0]).toMatchObject({ message: 'enough' });
    await stopping;
    expect(cluster.coordinator.stopRecord).toMatchObject({
      requester: { worker: 'worker:1' },
      suppressed: [],
    });
  });

  it.each(['shouldStop', 'signal'])('sees its own cancellation (%s)', async (asked) => {
    const caller = new AbortController();
    const { cluster, values } = await computing(
      { signal: caller.signal, worker: 0 },
      ['untilCancelled', asked],
      ['untilStopped'],
    );
    const { pid } = cluster.workers[0] as { pid: number };
    const reason = Object.assign(new RangeError('too dear'), { part: 3 });
    caller.abort(reason);
    await expect(values[0]).rejects.toBe(reason);
    // The process is alive, though the grace period of cancelled functions is long.
    expect(await cluster.run('howItEnded', [], { worker: 0 })).toEqual({
      name: 'RangeError',
      message: 'too dear',
      part: 3,
      isStopped: false,
      pid,
    });
    cluster.coordinator.requestStop();
    expect(await values[1]).toMatchObject({ pid: process.pid });
  });

  it('sees its deadline', async () => {
    // The deadline passes when the function computes, however long its process takes to start.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const { cluster, values } = await computing({ timeoutMs: 1_000 }, ['untilCancelled']);
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
    await expect(values[0]).rejects.toThrow('1000 ms');
    expect(await cluster.run('howItEnded')).toMatchObject({ name: 'DeadlineExceededError' });
  });

  it('is left alone by the cancellation of the one before it', async () => {
    const { cluster, values } = await computing(['untilStopped']);
    await cluster.resize(2);
    const remote = await cluster.schedule('untilCancelled', []);
    await once(remote.progress);
    remote.cancel();
    await expect(remote.fetch()).rejects.toThrow();
    expect(await cluster.run('asksOnce', [], { worker: 1 })).toBe(false);
    cluster.coordinator.requestStop();
    await Promise.all(values);
  });

  it('leaves no memory of cancellations for which no function asks', { tags: 'long' }, async () => {
    const execArgv = ['--expose-gc'];
    const strategy = new LocalStrategy({ module, workers: 1, isolation: 'process', execArgv });
    const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 20_000 });
    clusters.push(cluster);
    const text = 'x'.repeat(1_000_000);
    const before = (await cluster.run('memory')) as number;
    for (let count = 0; count < 300; count += 1) {
      const caller = new AbortController();
      const onProgress = () => caller.abort(Object.assign(new Error('enough'), { text }));
      await cluster.run('brief', [], { signal: caller.signal, onProgress }).catch(() => {});
    }
    const grown = ((await cluster.run('memory')) as number) - before;
    expect(grown).toBeLessThan(200e6); // their reasons have 300 MB
  });

  it('has an error beside the stop, which the program finds suppressed', async () => {
    const { cluster, values } = await computing(['stopLate', 'and more']);
    cluster.coordinator.requestStop(new Error('first'));
    await Promise.allSettled(values);
    const { error, suppressed } = cluster.coordinator.stopRecord ?? {};
    expect(error).toMatchObject({ message: 'first' });
    expect(suppressed).toMatchObject([{ error: { message: 'and more' } }]);
  });

  // Windows ends the children of a process with it.
  it.skipIf(process.platform === 'win32').each(['untilOrphaned', 'untilOrphanedAsync'])(
    'is stopped by the death of the program with an UnavailableError, and ends (%s)',
    async (name) => {
      const program = spawn(process.execPath, [fileURLToPath(module), 'parent', name], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let written = '';
      // The worker shares this standard output: it is closed when the worker has ended.
      for await (const text of program.stdout) written += text;
      expect(JSON.parse(written)).toMatchObject({
        name: 'UnavailableError',
        code: 'ERR_ALLSTOP_UNAVAILABLE',
        message: expect.stringContaining(`parent process ${program.pid}`),
      });
    },
  );
});

describe('a process that computes for a thread which is terminated, while the program lives on', () => {
  const owner = fileURLToPath(new URL('../../fixtures/terminated-owner.mjs', import.meta.url));

  /** Resolves when the worker process has ended, which has the program's standard output. */
  async function orphaned(name: string): Promise<{ program: ChildProcess; written: string }> {
    const program = spawn(process.execPath, [owner, name], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    const written = await textOf(program.stdout as Readable);
    expect(program.exitCode).toBe(null);
    return { program, written };
  }

  it.each(['untilOrphaned', 'untilOrphanedAsync'])(
    'is stopped with an UnavailableError, and ends (%s)',
    async (name) => {
      const { program, written } = await orphaned(name);
      program.disconnect();
      expect(JSON.parse(written)).toMatchObject({
        name: 'UnavailableError',
        code: 'ERR_ALLSTOP_UNAVAILABLE',
        message: expect.stringContaining(`parent process ${program.pid}, or its thread`),
      });
    },
  );

  it('ends, though it never asks, and leaves no pipe open', async () => {
    const { program } = await orphaned('forEver');
    program.send('how many?');
    const [{ before, after }] = await emitted(program, 'message');
    // The program has closed its standard output, which was one.
    expect(after).toBe(before === undefined ? undefined : before - 1);
  });
});
