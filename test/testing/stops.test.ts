/** tripAfter and fakeStraggler: stops and stragglers that a test needs, when the test needs them. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator, LooperThread, StragglersError } from 'allstop';
import { fakeStraggler, tripAfter } from 'allstop/testing';
import { describe, expect, it, vi } from 'vitest';

const wrong = (value: unknown): never => value as never;
const type = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
const range = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
const methods = ['shouldStop', 'waitForStop', 'waitForStopSync'];

describe('tripAfter', () => {
  it.each([1, 2, 7])('stops at poll %d, and not before', async (n) => {
    const coord = new Coordinator();
    tripAfter(coord, n, new RangeError('tripped'));
    let polls = 1;
    while (!coord.shouldStop()) polls += 1;
    expect(polls).toBe(n);
    expect(coord.signal.reason).toEqual(new RangeError('tripped'));
    expect(coord.stopRecord).toMatchObject({ kind: 'error', requester: { via: 'call' } });
    expect(coord.stopRecord?.requester.stack).toContain('stops.test.ts');
    await expect(coord.join()).rejects.toThrow('tripped');
  });

  it('stops without an error if it is given none', async () => {
    const coord = new Coordinator();
    tripAfter(coord, 1);
    expect(coord.shouldStop()).toBe(true);
    expect(coord.stopRecord?.kind).toBe('plain');
    await coord.join();
  });

  it('counts waits of no time, which only look', async () => {
    const coord = new Coordinator();
    tripAfter(coord, 3);
    expect(await coord.waitForStop(0)).toBe(false);
    expect(coord.waitForStopSync(0)).toBe(false);
    expect(coord.signal.aborted).toBe(false);
    expect(coord.waitForStopSync(1)).toBe(false);
    expect(await coord.waitForStop(0)).toBe(true);
    expect(coord.signal.aborted).toBe(true);
  });

  it('wakes all that wait for the stop', async () => {
    const coord = new Coordinator();
    const waiting = coord.waitForStop();
    const task = coord.start((same) => same.waitForStop());
    tripAfter(coord, 1);
    coord.shouldStop();
    expect(await waiting).toBe(true);
    await task;
  });

  it('counts each trip by itself', () => {
    const coord = new Coordinator();
    tripAfter(coord, 2, new RangeError('second'));
    coord.shouldStop();
    tripAfter(coord, 2, new RangeError('third'));
    expect(coord.shouldStop()).toBe(true);
    expect(coord.shouldStop()).toBe(true);
    expect(coord.stopRecord).toMatchObject({
      error: new RangeError('second'),
      suppressed: [{ error: new RangeError('third') }],
    });
  });

  it('is called off when it is disposed of, also twice, in any order', () => {
    const coord = new Coordinator();
    const first = tripAfter(coord, 1);
    const second = tripAfter(coord, 1);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    second[Symbol.dispose]();
    expect(coord.shouldStop()).toBe(false);
    for (const method of methods) expect(Object.hasOwn(coord, method)).toBe(false);
    expect(coord.explain()).toMatchObject({ stopped: false, links: [], threads: [] });
  });

  it('leaves the object as it was after the trip', () => {
    const coord = new Coordinator();
    const trip = tripAfter(coord, 1);
    coord.shouldStop();
    for (const method of methods) expect(Object.hasOwn(coord, method)).toBe(false);
    coord.clearStop();
    trip[Symbol.dispose]();
    expect(coord.shouldStop()).toBe(false);
  });

  it('lives with the spies of a test runner, before and behind it', () => {
    const coord = new Coordinator();
    const before = vi.spyOn(coord, 'shouldStop');
    const trip = tripAfter(coord, 2);
    const behind = vi.spyOn(coord, 'shouldStop');
    expect(coord.shouldStop()).toBe(false);
    trip[Symbol.dispose]();
    expect(coord.shouldStop()).toBe(false);
    expect(behind).toHaveBeenCalledTimes(2);
    behind.mockRestore();
    before.mockRestore();
    expect(coord.shouldStop()).toBe(false);
  });

  it('counts the polls of its own thread only', async () => {
    const coord = new Coordinator();
    tripAfter(coord, 2);
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { Coordinator } = require('allstop');
      const { tripAfter } = require('allstop/testing');
      const coord = Coordinator.attach(workerData);
      for (let i = 0; i < 100; i += 1) coord.shouldStop();
      parentPort.postMessage(coord.shouldStop());
      parentPort.once('message', () => {
        tripAfter(coord, 3, new RangeError('of the worker'));
        parentPort.postMessage([coord.shouldStop(), coord.shouldStop(), coord.shouldStop()]);
      });`;
    const worker = new Worker(code, { eval: true, workerData: coord.handle });
    expect((await once(worker, 'message'))[0]).toBe(false);
    // A worker that ends gives its last message and its exit in one turn.
    const [answer, exit] = [once(worker, 'message'), once(worker, 'exit')];
    worker.postMessage('go on');
    expect((await answer)[0]).toEqual([false, false, true]);
    await exit;
    expect(coord.stopRecord?.error).toEqual(new RangeError('of the worker'));
  });

  it('stops a looper at the pass that the test wants', async () => {
    const coord = new Coordinator();
    const passes: number[] = [];
    tripAfter(coord, 3);
    const thread = LooperThread.loop(coord, 0, () => {
      passes.push(passes.length);
      coord.shouldStop();
    });
    await coord.join([thread]);
    expect(passes).toEqual([0, 1, 2]);
  });

  it('refuses what it cannot do, and changes nothing then', async () => {
    const coord = new Coordinator({ name: 'app' });
    const refusals: [() => unknown, object][] = [
      [() => tripAfter(wrong({}), 1), type],
      [() => tripAfter(wrong(undefined), 1), type],
      [() => tripAfter(coord, wrong('1')), type],
      [() => tripAfter(coord, 0), range],
      [() => tripAfter(coord, 1.5), range],
      [() => tripAfter(coord, Number.POSITIVE_INFINITY), range],
      [
        () => tripAfter(wrong(Object.freeze(new Coordinator())), 1),
        { code: 'ERR_ALLSTOP_FAILED_PRECONDITION' },
      ],
    ];
    for (const [call, error] of refusals) expect(call).toThrow(expect.objectContaining(error));
    expect(Object.hasOwn(coord, 'shouldStop')).toBe(false);
    await coord.join();
    expect(() => tripAfter(coord, 1)).toThrow(
      "The coordinator 'app' was joined: a stop now would be of no effect. Call clearStop() before tripAfter()",
    );
  });
});

describe('fakeStraggler', () => {
  it('overstays the grace period of a join, until it is released', async () => {
    const coord = new Coordinator();
    const straggler = fakeStraggler(coord, 'stubborn');
    coord.requestStop();
    await expect(coord.join({ stopGracePeriodMs: 0 })).rejects.toThrow(StragglersError);
    expect(coord.leftBehind).toMatchObject([{ name: 'stubborn', kind: 'custom' }]);
    expect(coord.explain().leftBehind).toHaveLength(1);
    straggler[Symbol.dispose]();
    expect(coord.leftBehind).toEqual([]);
    straggler[Symbol.dispose]();
    expect(coord.threads).toEqual([]);
  });

  it('is an ordinary thread that a join waits for, if there is no stop', async () => {
    const coord = new Coordinator();
    const straggler = fakeStraggler(coord);
    expect(coord.threads).toMatchObject([{ name: 'straggler', alive: true }]);
    const joined = coord.join({ stopGracePeriodMs: 0 });
    straggler[Symbol.dispose]();
    await joined;
    expect(coord.explain()).toMatchObject({ stopped: false, threads: [], leftBehind: [] });
  });

  it('refuses wrong arguments', () => {
    const coord = new Coordinator();
    expect(() => fakeStraggler(wrong(null))).toThrow(expect.objectContaining(type));
    expect(() => fakeStraggler(coord, wrong(1))).toThrow(expect.objectContaining(type));
    expect(coord.threads).toEqual([]);
  });
});
