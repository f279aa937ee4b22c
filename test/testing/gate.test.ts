/** Gates: threads are held until the test opens them, and no stop, exit or limit hangs on them. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator, type CoordinatorHandle } from 'allstop';
import { DeadlineExceededError, Gate, type GateHandle } from 'allstop/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isPending } from '../support/gate.ts';
import { runScript, saidOf } from '../support/run-script.ts';

const script = new URL('../fixtures/gate-worker.mjs', import.meta.url);
const workers: Worker[] = [];

/** Starts a worker that goes to the gate. */
function held(gate: Gate, how: 'async' | 'sync', timeoutMs?: number): Worker {
  const worker = new Worker(script, { workerData: { handle: gate.handle, how, timeoutMs } });
  workers.push(worker);
  return worker;
}

const saidBy = async (worker: Worker): Promise<any> => (await once(worker, 'message'))[0];

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
});

describe('a gate', () => {
  it.each(['async', 'sync'] as const)('holds threads until it is opened (%s)', async (how) => {
    const gate = new Gate();
    const all = [held(gate, how), held(gate, how)];
    const said = Promise.all(all.map(saidBy));
    await gate.arrived(2);
    expect(gate.arrivals).toBe(2);
    expect(gate.isOpen).toBe(false);
    expect(await isPending(said)).toBe(true);
    gate.open();
    expect(await said).toEqual(['passed', 'passed']);
    gate.open();
    await gate.pass(); // stays open
    gate.passSync();
    expect(gate.arrivals).toBe(4);
  });

  it('holds async tasks of one thread, and says when they have arrived', async () => {
    const gate = new Gate();
    const arrived = gate.arrived();
    expect(await isPending(arrived)).toBe(true);
    const passed = gate.pass();
    await arrived;
    expect(await isPending(passed)).toBe(true);
    gate.open();
    await passed;
  });

  it.each(['async', 'sync'] as const)(
    'lets a held thread go when its coordinator stops, as an echo (%s)',
    async (how) => {
      const coordinator = new Coordinator({ name: 'app' });
      const gate = new Gate({ coordinator, name: 'middle' });
      const said = saidBy(held(gate, how));
      await gate.arrived();
      coordinator.requestStop(new RangeError('enough'));
      expect(await said).toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED', cause: 'enough' });
    },
  );

  it('adds no error to the stop that has ended the wait', async () => {
    const coordinator = new Coordinator();
    const gate = new Gate({ coordinator });
    void coordinator.start(() => gate.pass());
    await gate.arrived();
    coordinator.requestStop(new RangeError('enough'));
    await expect(coordinator.join()).rejects.toThrow('enough');
    expect(coordinator.stopRecord?.suppressed).toEqual([]);
  });

  it('ends a wait for threads that will not come, since the coordinator was stopped', async () => {
    const coordinator = new Coordinator();
    const gate = new Gate({ coordinator });
    const arrived = gate.arrived();
    coordinator.requestStop(new RangeError('died on the way'));
    coordinator.clearStop(); // a wait that had begun sees the stop all the same
    await expect(arrived).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
    const again = gate.arrived();
    expect(await isPending(again)).toBe(true);
    gate.open();
    await gate.pass();
    await again;
  });

  it('says after the time limit who is missing', async () => {
    const gate = new Gate({ name: 'start' });
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await expect(gate.pass({ timeoutMs: 0 })).rejects.toThrow(
      "After 0 ms the gate 'start' was closed. Does the test call open()?",
    );
    expect(turned).toBe(true); // a loop of looks starves nothing
    await expect(gate.arrived(3, { timeoutMs: 1 })).rejects.toThrow(
      "After 1 ms 1 of 3 threads had arrived at the gate 'start'. Does each call pass() or passSync()?",
    );
    expect(() => gate.passSync({ timeoutMs: 1 })).toThrow(DeadlineExceededError);
    const worker = held(gate, 'sync', 1);
    expect(await saidBy(worker)).toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
  });

  it('is left by a signal with its reason', async () => {
    const controller = new AbortController();
    const passed = new Gate().pass({ signal: controller.signal });
    controller.abort(new RangeError('mine'));
    await expect(passed).rejects.toThrow('mine');
    await expect(new Gate().arrived(1, { signal: controller.signal })).rejects.toThrow('mine');
  });

  it.each(['async', 'sync'] as const)(
    'lets a thread be terminated that it holds (%s)',
    async (how) => {
      const gate = new Gate();
      const worker = held(gate, how);
      await gate.arrived();
      await worker.terminate();
      gate.open();
      await gate.pass();
    },
  );

  it('is not held up by fake timers', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'setInterval', 'setImmediate', 'Date', 'performance'],
    });
    const gate = new Gate();
    const said = saidBy(held(gate, 'sync'));
    await gate.arrived();
    gate.open();
    expect(await said).toBe('passed');
    await expect(new Gate().pass({ timeoutMs: 20 })).rejects.toThrow(DeadlineExceededError);
  });

  it('opens when it is disposed of, also twice', async () => {
    const gate = new Gate();
    const passed = gate.pass();
    gate[Symbol.dispose]();
    gate[Symbol.dispose]();
    await passed;
  });

  it('leaves no trace in its coordinator', async () => {
    const coordinator = new Coordinator();
    const gate = new Gate({ coordinator });
    const passed = gate.pass();
    gate.open();
    await passed;
    expect(coordinator.explain()).toMatchObject({ stopped: false, threads: [], links: [] });
    await coordinator.join();
  });
});

describe('process.exit()', () => {
  it.each(['async', 'sync'])('ends a program whose threads are held (%s)', async (how) => {
    const ended = await runScript('held-at-a-gate', [how, 'exit']);
    expect(ended).toMatchObject({ code: 3, stderr: '' });
    expect(saidOf(ended, 'held')).toBeDefined();
  });

  it('is not needed after a gate was opened', async () => {
    const ended = await runScript('held-at-a-gate', ['async', 'open']);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('wrong arguments of a gate', () => {
  const wrong = (value: unknown): never => value as never;
  const type = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
  const range = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
  const option = { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' };
  const handle = { name: 'InvalidHandleError', code: 'ERR_ALLSTOP_INVALID_HANDLE' };
  const saidToBeShared = Object.defineProperty(new Int32Array(2), 'buffer', {
    value: new SharedArrayBuffer(8),
  });

  it.each([
    [1, type],
    [{ name: 5 }, type],
    [{ nam: 'x' }, option],
    [{ coordinator: {} }, type],
  ])('new Gate(%o)', (options, error) => {
    expect(() => new Gate(wrong(options))).toThrow(expect.objectContaining(error));
  });

  it.each([
    [undefined, type],
    [null, type],
    [{}, handle],
    [{ type: 'allstop.Gate', name: 'x', words: new Int32Array(2) }, handle],
    [{ type: 'allstop.Gate', name: 'x', words: saidToBeShared }, handle],
    [{ ...new Gate().handle, coordinator: {} as CoordinatorHandle }, handle],
  ] as [GateHandle, object][])('Gate.attach(%o)', (value, error) => {
    expect(() => Gate.attach(value)).toThrow(expect.objectContaining(error));
  });

  it('are no arrival', async () => {
    const gate = new Gate();
    await expect(gate.pass(wrong(5))).rejects.toMatchObject(type);
    await expect(gate.pass({ timeoutMs: -1 })).rejects.toMatchObject(range);
    await expect(gate.pass({ signal: wrong('x') })).rejects.toMatchObject(type);
    await expect(gate.pass({ signal: AbortSignal.abort() })).rejects.toThrow('abort');
    expect(() => gate.passSync({ timeoutMs: Number.NaN })).toThrow(expect.objectContaining(range));
    await expect(gate.arrived(wrong('1'))).rejects.toMatchObject(type);
    await expect(gate.arrived(0)).rejects.toMatchObject(range);
    expect(gate.arrivals).toBe(0);
  });
});
