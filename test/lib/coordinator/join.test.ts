import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError, SelfJoinError, StragglersError } from 'allstop';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Gate, gate, isPending, turn } from '../../support/gate.ts';
import { OtherThread } from '../../support/other-thread.ts';
import { Program } from '../../support/program.ts';
import { addon } from '../../support/test-addon.ts';

function task(coord: Coordinator, name: string): Gate {
  const held = gate();
  void coord.start(() => held.opened, { name });
  return held;
}

describe('what join waits for', () => {
  it('waits for every registered thread when nobody asks for a stop', async () => {
    const coord = new Coordinator();
    const one = task(coord, 'one');
    const two = task(coord, 'two');
    const joined = coord.join();
    one.open();
    expect(await isPending(joined)).toBe(true);
    two.open();
    await joined;
    expect(coord.joined).toBe(true);
    expect(coord.shouldStop()).toBe(false);
  });

  it('waits for the union of the registered threads and those passed', async () => {
    const coord = new Coordinator();
    const registered = task(coord, 'registered');
    const passed = gate();
    const joined = coord.join([passed.opened]);
    registered.open();
    expect(await isPending(joined)).toBe(true);
    passed.open();
    await joined;
  });

  it('takes each thread once, however it got in', async () => {
    const coord = new Coordinator();
    const held = gate();
    coord.registerThread(held.opened, { name: 'held' });
    coord.registerThread(held.opened);
    const joined = coord.join([held.opened, held.opened]);
    expect(coord.threads.map(({ name }) => name)).toEqual(['held']);
    held.open();
    await joined;
  });

  it('takes the threads as they stand; later ones stay for the next join', async () => {
    const coord = new Coordinator();
    const early = task(coord, 'early');
    const joined = coord.join();
    const late = task(coord, 'late');
    early.open();
    await joined;
    expect(coord.threads.map(({ name }) => name)).toEqual(['late']);
    const again = coord.join();
    expect(await isPending(again)).toBe(true);
    late.open();
    await again;
  });

  it('may be called by several at once, each with a grace period of its own', async () => {
    const coord = new Coordinator();
    const held = task(coord, 'held');
    const impatient = coord.join({ stopGracePeriodMs: 0 });
    const patient = coord.join();
    coord.requestStop();
    await expect(impatient).rejects.toThrow(StragglersError);
    expect(await isPending(patient)).toBe(true); // though the other join has removed the thread
    held.open();
    await patient;
  });

  it('is told of a native thread that ends', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'gate', 'join-native');
    const joined = coord.join();
    expect(await isPending(joined)).toBe(true);
    addon.openGate('join-native');
    await joined;
    expect(coord.explain().recentlyEnded).toMatchObject([{ name: 'join-native', kind: 'native' }]);
  });

  it('may be called in a worker, for threads of the main thread', async () => {
    const coord = new Coordinator();
    const held = task(coord, 'held');
    const worker = new Worker(new URL('../../fixtures/join-worker.mjs', import.meta.url), {
      workerData: coord.handle,
    });
    const messages = new Promise<string>((resolve) => worker.on('message', resolve));
    held.open();
    expect(await messages).toBe('joined');
    expect(coord.joined).toBe(true);
  });
});

describe('the grace period', () => {
  it('names the stragglers', async () => {
    const coord = new Coordinator();
    task(coord, 'slow');
    task(coord, 'slower');
    coord.requestStop();
    const error = await coord.join({ stopGracePeriodMs: 1 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StragglersError);
    expect(error).toMatchObject({
      code: 'ERR_ALLSTOP_STRAGGLERS',
      message: 'Coordinator stopped with threads still running: slow slower',
      stragglers: [
        { name: 'slow', kind: 'task', runningForMs: expect.any(Number) },
        { name: 'slower', kind: 'task' },
      ],
    });
  });

  it.runIf(process.platform === 'linux')('says what a native straggler waits in', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'gate', 'native-straggler');
    // A native thread has its thread id once it runs.
    while (coord.threads[0]?.threadId === undefined) await turn();
    coord.requestStop();
    const error = await coord.join({ stopGracePeriodMs: 0 }).catch((thrown: unknown) => thrown);
    expect((error as StragglersError).stragglers).toMatchObject([
      { name: 'native-straggler', kind: 'native', threadId: expect.any(Number) },
    ]);
    expect((error as StragglersError).stragglers[0]?.waitState).toMatch(/^[A-Z]/);
    addon.openGate('native-straggler');
  });

  it('resolves for stragglers that are to be ignored, and forgets them', async () => {
    const coord = new Coordinator();
    task(coord, 'slow');
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    expect(coord.joined).toBe(true);
    expect(coord.threads).toEqual([]);
  });

  it('ends early when the threads do', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: Number.POSITIVE_INFINITY });
    const held = task(coord, 'held');
    coord.requestStop();
    const joined = coord.join();
    held.open();
    await joined;
  });

  it('lets the recorded error beat the stragglers', async () => {
    const coord = new Coordinator();
    task(coord, 'slow');
    coord.requestStop(new RangeError('first'));
    const options = { stopGracePeriodMs: 0, ignoreLiveThreads: true };
    await expect(coord.join(options)).rejects.toThrow('first');
  });
});

/** The warnings of the process while `run` runs. Node emits them in the next tick. */
async function warningsOf(run: () => Promise<void>): Promise<Error[]> {
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on('warning', note);
  await run();
  await turn();
  process.off('warning', note);
  return warnings;
}

describe('a join that has waited 10 seconds since the stop', () => {
  /** From now on time passes only by `warningsAfter`. */
  const useFakeTimers = (): unknown =>
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const warningsAfter = (ms: number): Promise<Error[]> =>
    warningsOf(async () => void vi.advanceTimersByTime(ms));

  beforeEach(() => turn()); // in which the warnings of the test before are emitted
  afterEach(() => void vi.useRealTimers());

  it('says once for whom it waits', async () => {
    const coord = new Coordinator({ name: 'app' });
    const held = Array.from({ length: 10 }, (_, at) => task(coord, `task ${at}`));
    coord.requestStop();
    useFakeTimers();
    const joined = coord.join();
    expect(await warningsAfter(9_999)).toEqual([]);
    expect(await warningsAfter(1)).toMatchObject([
      {
        name: 'StillWaitingWarning',
        code: 'ALLSTOP_STILL_WAITING',
        message:
          "The join() of the stopped coordinator 'app' has waited 10 s for 'task 0', 'task 1', 'task 2', 'task 3', 'task 4', 'task 5', 'task 6', 'task 7' and 2 more",
        detail: 'explain() and diagnose() say what they do.',
      },
    ]);
    expect(await warningsAfter(30_000)).toEqual([]);
    for (const each of held) each.open();
    await joined;
  });

  it('says how a worker ends that listens for messages', async () => {
    const coord = new Coordinator({ name: 'app' });
    const source =
      "const { parentPort } = require('worker_threads'); parentPort.once('message', () => {})";
    const worker = new Worker(source, { eval: true });
    coord.registerThread(worker, { name: 'listener' });
    coord.requestStop();
    useFakeTimers();
    const joined = coord.join();
    const [warning] = await warningsAfter(10_000);
    expect(warning).toMatchObject({ detail: expect.stringContaining('parentPort.close()') });
    vi.useRealTimers();
    worker.postMessage('the last');
    await joined;
  });

  it('says nothing while no stop is requested, after one was cleared, and when it is over', async () => {
    const coord = new Coordinator();
    const held = task(coord, 'server');
    useFakeTimers();
    const joined = coord.join();
    const quiet = [await warningsAfter(60_000)];
    coord.requestStop();
    await turn();
    coord.clearStop();
    await turn();
    quiet.push(await warningsAfter(60_000));
    coord.requestStop();
    held.open();
    await joined;
    const late = task(coord, 'late');
    quiet.push(await warningsAfter(60_000));
    expect(quiet).toEqual([[], [], []]);
    late.open();
  });

  it('counts from the last stop, if one was cleared meanwhile', async () => {
    const coord = new Coordinator();
    const held = task(coord, 'server');
    useFakeTimers();
    const joined = coord.join();
    coord.requestStop();
    await turn();
    coord.clearStop();
    await warningsAfter(5_000);
    coord.requestStop();
    await turn();
    expect(await warningsAfter(9_999)).toEqual([]);
    expect(await warningsAfter(1)).toMatchObject([{ code: 'ALLSTOP_STILL_WAITING' }]);
    held.open();
    await joined;
  });
});

describe('threads that a join leaves behind', () => {
  it.each([
    ['it ignores live threads', { ignoreLiveThreads: true }, undefined],
    ['it throws a StragglersError', {}, undefined],
    ['an error came first', {}, new RangeError('first')],
  ])('stay visible until they end: %s', async (_, options, error) => {
    const coord = new Coordinator({ name: 'pipeline' });
    const held = task(coord, 'stubborn');
    expect(coord.leftBehind).toEqual([]);
    coord.requestStop(error);
    await coord.join({ stopGracePeriodMs: 0, ...options }).catch(() => {});
    const left = [{ name: 'stubborn', kind: 'task', runningForMs: expect.any(Number) }];
    expect(coord.leftBehind).toEqual(left);
    expect(coord.explain().leftBehind).toEqual(left);
    expect(coord.threads).toEqual([]);
    expect(coord.explain().toString()).toMatch(
      /Left behind by a join and still running \(1\):\n {2}- stubborn \(task\): asked to stop \d+ ms ago/,
    );
    await coord.join({ stopGracePeriodMs: 0 }).catch(() => {}); // no longer its thread
    coord.clearStop();
    expect(coord.leftBehind).toEqual(left);

    held.open();
    await held.opened;
    await turn();
    expect(coord.leftBehind).toEqual([]);
    expect(coord.explain().recentlyEnded).toMatchObject([{ name: 'stubborn' }]);
    expect(coord.explain().toString()).not.toContain('Left behind');
  });

  it('are warned of once, also if a listener ends the process', async () => {
    const { ended } = new Program('test/fixtures/exits-at-a-warning.mjs');
    expect(await ended).toMatchObject({ code: 0, stdout: 'ALLSTOP_STRAGGLERS\n' });
  });

  it('are seen by every JavaScript thread', async () => {
    const coord = new Coordinator();
    task(coord, 'stubborn');
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    const other = new OtherThread();
    expect(await other.see(coord, (_, tools) => tools.coord.leftBehind)).toMatchObject([
      { name: 'stubborn', kind: 'task' },
    ]);
    await other.end();
  });

  it('are registered again by the join to which they are passed', async () => {
    const coord = new Coordinator();
    const held = gate();
    coord.registerThread(held.opened, { name: 'back' });
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    coord.clearStop();
    const joined = coord.join([held.opened]);
    expect(coord.leftBehind).toEqual([]);
    expect(coord.threads).toMatchObject([{ name: 'back' }]);
    held.open();
    await joined;
  });

  it('include native ones, with what they wait in', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'gate', 'left-native');
    while (coord.threads[0]?.threadId === undefined) await turn();
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    const [left] = coord.leftBehind;
    expect(left).toMatchObject({ name: 'left-native', kind: 'native' });
    if (process.platform === 'linux') expect(left?.waitState).toMatch(/^[A-Z]/);
    addon.openGate('left-native');
    await eventually(() => coord.leftBehind.length === 0);
  });

  it('are gone with the worker that watched them', async () => {
    const coord = new Coordinator();
    const url = new URL('../../lifecycle/scripts/dies-with-tasks.mjs', import.meta.url);
    const worker = coord.spawn(url, { workerData: 'exits', name: 'watcher' });
    await new Promise((resolve) => worker.once('message', resolve));
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    const names = ['watcher', 'a task of the worker'];
    expect(coord.leftBehind.map(({ name }) => name)).toEqual(names);
    await worker.terminate();
    await eventually(() => coord.leftBehind.length === 0);
  });

  it('are named by one warning, unless an error names them', async () => {
    const left = async (ignoreLiveThreads: boolean, error?: unknown): Promise<void> => {
      const coord = new Coordinator({ name: 'pipeline' });
      task(coord, 'slow');
      task(coord, 'slower');
      coord.requestStop(error);
      await Promise.allSettled([coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads })]);
    };
    const warning = {
      code: 'ALLSTOP_STRAGGLERS',
      detail: expect.stringContaining("'pipeline'"),
    };
    expect(await warningsOf(() => left(true))).toMatchObject([warning]);
    expect(await warningsOf(() => left(false, new RangeError('first')))).toMatchObject([warning]);
    expect(await warningsOf(() => left(false))).toEqual([]);
    expect(await warningsOf(() => new Coordinator().join())).toEqual([]);
  });

  it('forge no line of a warning by their names', async () => {
    const left = async (): Promise<void> => {
      const coord = new Coordinator({ name: 'app\n(node:1) Warning' });
      task(coord, 'slow\u001b[2J');
      coord.requestStop();
      await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
    };
    expect(await warningsOf(left)).toMatchObject([
      {
        message: 'Coordinator stopped with threads still running: slow\\x1b[2J',
        detail: expect.stringContaining("'app\\x0a(node:1) Warning'"),
      },
    ]);
  });
});

describe('what join throws', () => {
  it('throws the identical value, again and again', async () => {
    const coord = new Coordinator();
    const error = new RangeError('first');
    coord.requestStop(error);
    for (const _ of [1, 2]) {
      expect(await coord.join().catch((thrown: unknown) => thrown)).toBe(error);
    }
  });

  it('throws what a task failed of', async () => {
    const coord = new Coordinator();
    const error = new TypeError('in the task');
    await coord.start(() => Promise.reject(error)); // never rejects
    expect(await coord.join().catch((thrown: unknown) => thrown)).toBe(error);
    expect(coord.stopRecord?.requester).toMatchObject({ via: 'exception', language: 'js' });
  });

  it.each([0, '', false, Number.NaN])('throws the value %s, which is no error', async (value) => {
    const coord = new Coordinator();
    coord.requestStop(value);
    const thrown = await coord.join().then(
      () => 'nothing',
      (error: unknown) => error,
    );
    expect(thrown).toBe(value);
  });

  it('throws undefined, if that was thrown', async () => {
    const coord = new Coordinator();
    await coord.start(() => Promise.reject(undefined));
    expect(coord.stopRecord?.kind).toBe('error');
    const settled = await Promise.allSettled([coord.join()]);
    expect(settled).toEqual([{ status: 'rejected', reason: undefined }]);
  });

  it('completes as stopped, though the stop was cleared at once', async () => {
    const coord = new Coordinator();
    task(coord, 'held');
    const joined = coord.join({ stopGracePeriodMs: 300 });
    coord.requestStop(new RangeError('cleared'));
    coord.clearStop();
    // The grace period runs; the error is no longer recorded, so it is not thrown.
    await expect(joined).rejects.toThrow(StragglersError);
    expect(coord.joined).toBe(true);
    expect(coord.shouldStop()).toBe(false);
  });

  it('counts a promise that was settled before as ended, without any grace', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    const nested = Promise.resolve(Promise.resolve(Promise.resolve()));
    const custom = { join: () => Promise.resolve() };
    await coord.join([nested, custom], { stopGracePeriodMs: 0 });
  });

  it('calls the join() of an object once, though that passes the object to a join', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: 0 });
    const own: Promise<unknown>[] = [];
    const thread = {
      join() {
        own.push(coord.join([thread]));
        return own[0] as Promise<unknown>;
      },
    };
    coord.registerThread(thread);
    expect(own).toHaveLength(1);
    expect(coord.threads).toHaveLength(1);
    coord.requestStop();
    await expect(own[0]).rejects.toThrow(StragglersError);
  });

  it('counts what has ended while this thread was busy for the whole grace period', async () => {
    const coord = new Coordinator();
    const { port1, port2 } = new MessageChannel();
    coord.registerThread(once(port1, 'message').then(() => port1.close()));
    await turn(); // from here, timers come before messages
    const joined = coord.join({ stopGracePeriodMs: 5 });
    coord.requestStop();
    port2.postMessage('this is the end');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10); // the thread is busy
    expect(coord.joined).toBe(false);
    await joined;
  });

  it('keeps errors that have no caller once it has completed', async () => {
    const coord = new Coordinator();
    await coord.join();
    await coord.start(() => Promise.reject(new RangeError('late')));
    expect(coord.shouldStop()).toBe(false);
    expect(coord.explain().toString()).toContain('late');
    coord.requestStop(new OutOfRangeError('clean')); // quietly
    expect(coord.stopRecord).toMatchObject({ kind: 'clean', suppressedCount: 1 });
    expect(coord.stopRecord?.suppressed[0]?.error).toMatchObject({ message: 'late' });
  });
});

describe('odd threads', () => {
  it('has nothing to wait for in a worker that has exited', async () => {
    const coord = new Coordinator();
    const worker = new Worker('', { eval: true });
    await new Promise((resolve) => worker.once('exit', resolve));
    coord.registerThread(worker);
    await coord.join([worker]);
    expect(coord.shouldStop()).toBe(false);
  });

  it('takes a promise that can also be joined for a promise', async () => {
    const coord = new Coordinator();
    const held = gate();
    const query = Object.assign(held.opened, {
      join: () => expect.unreachable('a query has a join() of its own'),
    });
    const joined = coord.join([query]);
    expect(coord.threads).toMatchObject([{ kind: 'task' }]);
    held.open();
    await joined;
  });

  it('waits in another thread for as long as the coordinator says by default', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: 1 });
    task(coord, 'slow');
    coord.requestStop();
    const worker = new Worker(new URL('../../fixtures/join-worker.mjs', import.meta.url), {
      workerData: coord.handle,
    });
    const error = await new Promise<Error>((resolve) => worker.on('error', resolve));
    expect(error.name).toBe('StragglersError');
  });
});

describe('giving up', () => {
  it('rejects with the reason of the signal, and changes nothing', async () => {
    const coord = new Coordinator();
    const held = task(coord, 'held');
    const controller = new AbortController();
    const joined = coord.join({ signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(joined).rejects.toThrow('enough');
    expect(coord.joined).toBe(false);
    expect(coord.threads).toHaveLength(1);
    held.open();
    await coord.join();
  });

  it('does not begin with an aborted signal', async () => {
    const coord = new Coordinator();
    const signal = AbortSignal.abort(new Error('before'));
    await expect(coord.join([new Promise(() => {})], { signal })).rejects.toThrow('before');
    expect(coord.threads).toEqual([]);
  });
});

describe('joining oneself', () => {
  it('is an error in a task, which stops the coordinator', async () => {
    const coord = new Coordinator();
    await coord.start((same) => same.join());
    expect(coord.stopRecord?.error).toBeInstanceOf(SelfJoinError);
    expect(coord.stopRecord?.error).toMatchObject({ code: 'ERR_ALLSTOP_SELF_JOIN' });
  });

  it('registers nothing of what was passed', async () => {
    const coord = new Coordinator({ cleanStopErrors: ['SelfJoinError'] });
    let names: string[] = [];
    await coord.start(
      async (same) => {
        await same.join([new Promise(() => {})]).catch(() => {});
        names = same.threads.map(({ name }) => name);
      },
      { name: 'self' },
    );
    expect(names).toEqual(['self']);
  });

  it('is an error in a task of a task', async () => {
    const coord = new Coordinator();
    await coord.start(async (same) => {
      await same.start((inner) => inner.join(), { name: 'inner' });
    });
    await expect(coord.join()).rejects.toThrow(SelfJoinError);
  });

  it('is no error in a task of another coordinator', async () => {
    const coord = new Coordinator();
    const other = new Coordinator();
    await other.start(() => coord.join());
    expect(other.shouldStop()).toBe(false);
  });

  it("is no error in an 'abort' listener, though a task requests the stop", async () => {
    const [app, pool] = [new Coordinator(), new Coordinator()];
    const joined = new Promise((resolve) => {
      app.signal.addEventListener('abort', () => resolve(pool.join()));
    });
    const stops = pool.start(async () => {
      app.requestStop();
      pool.requestStop();
    });
    await joined;
    await stops;
    expect(pool.joined).toBe(true);
  });

  it('is an error in a registered worker', async () => {
    const coord = new Coordinator();
    coord.spawn(new URL('../../fixtures/self-join-worker.mjs', import.meta.url));
    await expect(coord.join()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_SELF_JOIN' });
  });

  it('is an error on a registered native thread', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'join', 'self-join');
    expect(addon.result('self-join')).toBe('101');
    await coord.join();
  });
});
