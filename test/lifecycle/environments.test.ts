// JavaScript threads end: coordinators that they have read or made, and threads that they have
// watched, go on.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator, type CoordinatorHandle, UnavailableError } from 'allstop';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

const script = (name: string): URL => new URL(`./scripts/${name}.mjs`, import.meta.url);
const started: Worker[] = [];

function start(name: string, workerData?: unknown): Worker {
  const worker = new Worker(script(name), { workerData });
  started.push(worker);
  return worker;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.terminate()));
});

describe('a worker that ends before what it has registered', () => {
  it('says so though all that knew of it was collected before', async () => {
    const ended = await runScript('lost-watcher', [], { execArgv: ['--expose-gc'] });
    expect(saidOf(ended, 'joined')).toEqual({
      event: 'joined',
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      threads: 0,
    });
  });

  const names = ['a promise', 'a custom thread', 'a task'];

  it.each(['ends', 'is terminated'])('%s: a stop says so, and nobody hangs', async (how) => {
    const coord = new Coordinator();
    const worker = start('registers-and-ends', { handle: coord.handle });
    await once(worker, 'message');
    expect(coord.threads.map(({ name }) => name)).toEqual(names);

    const joined = expect(coord.join()).rejects.toThrow(UnavailableError);
    const exited = once(worker, 'exit');
    if (how === 'ends') worker.postMessage('end');
    else await worker.terminate();
    await joined;
    await exited;
    const { record, threads, recentlyEnded } = coord.explain();
    expect(record).toMatchObject({ kind: 'error', requester: { via: 'worker-exit' } });
    expect(threads).toEqual([]);
    expect(recentlyEnded.map(({ name }) => name)).toEqual(names);
    expect(recentlyEnded.every(({ unobserved }) => unobserved)).toBe(true);
  });

  it('adds nothing to a stop that was there', async () => {
    const coord = new Coordinator();
    const worker = start('registers-and-ends', { handle: coord.handle });
    await once(worker, 'message');
    coord.requestStop();
    const joined = coord.join();
    await worker.terminate();
    await joined; // all threads have ended, though no JavaScript thread has seen it
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressedCount: 0 });
    expect(coord.explain().recentlyEnded.every(({ unobserved }) => unobserved)).toBe(true);
  });
});

describe('a handle', () => {
  const stale = expect.objectContaining({ code: 'ERR_ALLSTOP_INVALID_HANDLE' }) as Error;

  it('keeps its state until the thread that read it ends with nobody attached', async () => {
    const worker = start('owns-coordinators');
    const [handles] = await once(worker, 'message');
    // The object has been collected in the worker, and the handle still works.
    const attached = Coordinator.attach(handles.attached);
    expect(attached.name).toBe('attached');
    const exited = once(worker, 'exit');
    worker.postMessage('end');
    await exited;
    expect(() => Coordinator.attach(handles.alone)).toThrow(stale);
    expect(Coordinator.attach(handles.attached)).toBe(attached);
    expect(attached.shouldStop()).toBe(false);
  });

  it('is stale, too, when that thread had spawned workers, which end with it', async () => {
    const worker = start('spawns-and-stays');
    const [handle] = await once(worker, 'message');
    await worker.terminate();
    expect(() => Coordinator.attach(handle as CoordinatorHandle)).toThrow(stale);
  });

  it('is stale once the coordinator is disposed of, in any thread', async () => {
    const worker = start('owns-coordinators');
    const [handles] = await once(worker, 'message');
    const attached = Coordinator.attach(handles.disposable);
    worker.postMessage('dispose');
    await once(worker, 'message');
    expect(attached.shouldStop()).toBe(true);
    expect(() => Coordinator.attach(handles.disposable)).toThrow(stale);
  });

  it('is stale after Coordinator.run()', async () => {
    const handle = await Coordinator.run((coord) => coord.handle);
    expect(() => Coordinator.attach(handle as CoordinatorHandle)).toThrow(stale);
  });
});

describe('Coordinator.current()', () => {
  it('is undefined in the main thread', () => {
    expect(Coordinator.current()).toBeUndefined();
  });

  it('is the coordinator that spawned the worker, and not its children', async () => {
    const coord = new Coordinator({ name: 'the parent' });
    const worker = coord.spawn(script('who-am-i'));
    const [answer] = await once(worker, 'message');
    expect(answer).toEqual({
      name: 'the parent',
      same: true,
      attached: true,
      grandchild: undefined,
    });
    await coord.join();
  });

  it('is undefined in a worker that nobody spawned', async () => {
    const worker = start('who-am-i');
    const [answer] = await once(worker, 'message');
    expect(answer).toMatchObject({ name: undefined });
  });

  it('waits for a parent that is slower than its worker', async () => {
    const coord = new Coordinator();
    const words = new Int32Array(new SharedArrayBuffer(4));
    let heldUp = false;
    // Node calls this when it has started the Worker. It delays spawn() until the worker is about
    // to ask for its coordinator, and then long enough for a wrong answer.
    const delay = (): void => {
      heldUp = true;
      expect(Atomics.wait(words, 0, 0, 20_000)).not.toBe('timed-out');
      coord.waitForStopSync(200);
    };
    subscribe('worker_threads', delay);
    onTestFinished(() => void unsubscribe('worker_threads', delay));
    const worker = coord.spawn(script('quick'), { workerData: words });
    const [code] = await once(worker, 'exit');
    expect(heldUp).toBe(true);
    expect(code).toBe(0);
    await coord.join();
    expect(coord.shouldStop()).toBe(false);
  });

  it.each([20])('is right in each of %i workers', ofWorkers);
  it.each([200])('is right in each of %i workers', { tags: 'long', timeout: 180_000 }, ofWorkers);
  async function ofWorkers(count: number): Promise<void> {
    const coord = new Coordinator();
    const BATCH = 10;
    for (let spawned = 0; spawned < count && !coord.shouldStop(); spawned += BATCH) {
      for (let i = 0; i < BATCH; ++i) coord.spawn(script('quick'));
      await coord.join();
    }
    expect(coord.threads).toEqual([]);
    expect(coord.stopRecord).toBeUndefined();
  }
});
