/** Processes that `coord.fork()` starts: stops both ways, errors, the death of either side. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';

const forked = new URL('../../fixtures/forked.mjs', import.meta.url);
const daemon = fileURLToPath(new URL('../../fixtures/forked-daemon.mjs', import.meta.url));
const isWindows = process.platform === 'win32';

async function message(child: ChildProcess): Promise<any> {
  const [received] = await once(child, 'message');
  return received;
}

describe('coord.fork', () => {
  it('registers the child, which computes and sees the stop with its error', async () => {
    const coord = new Coordinator({ name: 'kitchen' });
    const child = coord.fork(forked, ['compute'], { name: 'cook' });
    expect(coord.threads).toMatchObject([{ name: 'cook', kind: 'process', threadId: child.pid }]);
    expect(await message(child)).toBe('computing');
    coord.requestStop(Object.assign(new TypeError('too hot'), { part: 3 }));
    expect(await message(child)).toMatchObject({
      name: 'kitchen',
      message: 'too hot',
      part: 3,
      requester: { pid: process.pid, via: 'call' },
    });
    await expect(coord.join()).rejects.toThrow('too hot');
    expect(child.exitCode).toBe(0);
    expect(coord.stopRecord?.suppressed).toEqual([]);
  });

  it('stops the child while the main thread of the parent is busy', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['compute']);
    await message(child);
    coord.stopAfter(20);
    const end = Date.now() + 400;
    while (Date.now() < end); // a native thread makes the stop, and a native thread sends it
    const { sawStopAt } = await message(child);
    expect(sawStopAt).toBeLessThan(end);
    await expect(coord.join()).rejects.toThrow();
  });

  it('finds the parent stopped if it was stopped before', async () => {
    const coord = new Coordinator();
    coord.requestStop(new Error('closed today'));
    const child = coord.fork(forked, ['compute']);
    expect(await message(child)).toBe('computing');
    expect(await message(child)).toMatchObject({ message: 'closed today' });
    await expect(coord.join()).rejects.toThrow('closed today');
  });

  it('stops the parent, with class and fields of the error', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['fail'], { name: 'cook', serialization: 'advanced' });
    const error = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: 'the fork is bent', part: 7 });
    expect(coord.stopRecord).toMatchObject({
      requester: { pid: child.pid, threadName: 'cook', via: 'call' },
      suppressed: [],
    });
  });

  it.each([
    ['call', 'failSlowly'],
    ['abort', 'abortSlowly'],
  ])(
    'says who stopped the parent, and how, before the stop of the child has ended: %s',
    async (via, act) => {
      const coord = new Coordinator();
      const child = coord.fork(forked, [act], {
        name: 'cook',
        stdio: ['pipe', 'inherit', 'inherit', 'ipc'],
      });
      await coord.waitForStop();
      child.stdin?.end();
      await expect(coord.join()).rejects.toThrow('the fork is bent');
      expect(coord.stopRecord?.requester).toMatchObject({
        language: 'js',
        pid: child.pid,
        threadName: 'cook',
        via,
      });
    },
  );

  it('stops the parent without an error', async () => {
    const coord = new Coordinator();
    coord.fork(forked, ['plain']);
    await coord.join();
    expect(coord.stopRecord?.kind).toBe('plain');
  });

  it('dies of an error that the parent joins with, class and fields included', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['throw'], { silent: true });
    const error = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: 'the fork broke', part: 8 });
    expect(child.exitCode).toBe(1);
    expect(coord.stopRecord).toMatchObject({ requester: { pid: child.pid, via: 'worker-exit' } });
  });

  it('fails with the error of its hook, class and fields included, if nothing else fails', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['hook']);
    coord.requestStop();
    const error = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: 'the door is stuck', part: 9 });
    expect(child.exitCode).toBe(0);
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressed: [] });
  });

  it('has the error of its hook suppressed after another one', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['hook']);
    coord.requestStop(new RangeError('first'));
    await expect(coord.join()).rejects.toThrow('first');
    const requester = { via: 'hook', threadName: 'closeDoor', pid: child.pid };
    expect(coord.stopRecord).toMatchObject({
      suppressed: [{ error: { message: 'the door is stuck' }, requester }],
      suppressedCount: 1,
    });
  });

  it('tells of an error that native code reports there, which stops nobody', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['reportNatively']);
    await once(child, 'exit');
    await coord.join();
    expect(coord.shouldStop()).toBe(false);
    coord.requestStop();
    await expect(coord.join()).rejects.toThrow('the disk is slow');
  });

  it('tells of an error after the stop at once, also if it is killed later', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['failLateAndStay']);
    coord.requestStop();
    await eventually(() => coord.stopRecord?.suppressedCount === 1);
    child.kill('SIGKILL');
    await coord.join();
    expect(coord.stopRecord?.suppressed).toMatchObject([{ error: { message: 'too late' } }]);
  });

  it.each(['uncaught', 'uncaughtInRun', 'uncaughtInWorker'])(
    'fails with one error, not with the exit code that allstop sets for it, too: %s',
    async (act) => {
      const coord = new Coordinator();
      const child = coord.fork(forked, [act]);
      await expect(coord.join()).rejects.toThrow(new RangeError('bad input'));
      expect(child.exitCode).toBe(1);
      expect(coord.stopRecord?.suppressed).toEqual([]);
    },
  );

  it('fails with one error after the stop, too', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['uncaughtLate']);
    coord.requestStop();
    await coord.join();
    expect(child.exitCode).toBe(1);
    expect(coord.stopRecord).toMatchObject({
      suppressed: [{ error: new RangeError('bad input'), requester: { via: 'uncaught' } }],
      suppressedCount: 1,
    });
  });

  it('fails by an exit code that the program has set, beside its error', async () => {
    const coord = new Coordinator();
    coord.fork(forked, ['failAndChooseCode']);
    await expect(coord.join()).rejects.toThrow('bad input');
    expect(coord.stopRecord?.suppressed).toMatchObject([{ error: { exitCode: 1 } }]);
  });

  it('fails by the exit code for an error that its parent does not have', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['failUnseen'], { name: 'cook', silent: true });
    const written = text(child.stderr as Readable);
    await expect(coord.join()).rejects.toThrow("Process 'cook' exited with code 1");
    expect(await written).toContain("allstop: unhandled error of the coordinator 'other'");
  });

  it.skipIf(isWindows)('does not fail by a signal after the stop, which ends its run', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['runUntilSignal']);
    await message(child);
    coord.requestStop();
    child.kill('SIGTERM');
    await coord.join();
    expect(child.exitCode).toBe(143);
    expect(coord.stopRecord?.suppressed).toEqual([]);
  });

  it('carries an error of any length, both ways', async () => {
    const length = 8_000_000;
    const down = new Coordinator();
    const child = down.fork(forked, ['large']);
    down.requestStop(Object.assign(new Error('large'), { text: 'x'.repeat(length) }));
    expect(await message(child)).toBe(length);
    await expect(down.join()).rejects.toThrow('large');
    const up = new Coordinator();
    up.fork(forked, ['large', String(length)]);
    const error = await up.join().catch((thrown: unknown) => thrown);
    expect((error as { text: string }).text).toHaveLength(length);
  });

  it.each([[['ipc']], [['ipc', 'pipe']], [['pipe', 'pipe', 'pipe', 'ipc']]] as const)(
    'leaves the child its own output with stdio %j',
    async (stdio) => {
      const coord = new Coordinator();
      const child = coord.fork(forked, ['write'], { stdio: [...stdio] });
      const written = [child.stdout, child.stderr].map((stream) => text(stream as Readable));
      expect(await Promise.all(written)).toEqual(['out', 'err']);
      coord.requestStop();
      await coord.join();
    },
  );

  // Windows has no limit of descriptors that a test can reach.
  it.skipIf(isWindows).each([
    [0, 'threw ERR_ALLSTOP_UNAVAILABLE'], // none for the line
    [4, "emitted 'error' EMFILE"], // none for the child: Node's own way
  ])('says so when the system has %i descriptors left', async (left, said) => {
    const script = fileURLToPath(
      new URL('../../fixtures/without-descriptors.mjs', import.meta.url),
    );
    const run = 'ulimit -n 100 && exec "$0" "$@"';
    const program = spawn('sh', ['-c', run, process.execPath, script, String(left)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    expect(await text(program.stdout)).toBe(`fork ${said}\nthe cluster ran again\n`);
  });

  it('stays stopped when the parent clears its stop, and cannot clear it itself', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['clear']);
    coord.requestStop();
    coord.clearStop();
    expect(await message(child)).toEqual({
      code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
      stopped: true,
    });
    child.send('and now?');
    expect(await message(child)).toEqual({ stopped: true });
    await once(child, 'exit');
    expect(coord.shouldStop()).toBe(false);
  });

  it('cannot be cleared by another thread of the child, and ends', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['clearElsewhere']);
    expect(await message(child)).toEqual({
      code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
      stopped: true,
      kid: true,
    });
    await coord.join();
  });

  it('is not found by the child’s own children', async () => {
    const coord = new Coordinator();
    const child = coord.fork(forked, ['grandchild']);
    expect(await message(child)).toEqual({ hasCoordinator: false });
    coord.requestStop();
    await coord.join();
  });

  it.each([
    ['is not found by a program that the child starts', 'starts', { hasCoordinator: false }],
    ['is found stopped by the child', 'attaches', { code: 'ERR_ALLSTOP_UNAVAILABLE' }],
  ])('%s after the end of the parent', async (_, act, said) => {
    const parent = spawn(process.execPath, [daemon, 'parent', act], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const written = text(parent.stdout); // of the daemon and of its program, too
    await once(parent, 'exit');
    parent.stdin.end();
    expect(JSON.parse(await written)).toMatchObject(said);
  });

  it('is not made of a variable that no fork has written', async () => {
    const parent = { parent: process.pid };
    const line = { ...parent, down: 4, up: 5 };
    const wrong = [{ pipe: '0:0' }, { down: 400 }, { down: -1 }, { down: '4' }];
    const lines = wrong.map((part) => ({ ...line, ...part }));
    const values = [null, { parent: 'nobody' }, parent, line, ...lines];
    const variables = ['anything', ...values.map((value) => JSON.stringify(value))];
    const written = variables.map(async (variable) => {
      const program = spawn(process.execPath, [daemon, 'program'], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ALLSTOP_FORK: variable },
      });
      return [variable, await text(program.stdout)];
    });
    const said = JSON.stringify({ hasCoordinator: false, isStopped: false });
    expect(await Promise.all(written)).toEqual(variables.map((variable) => [variable, said]));
  });

  // Windows ends the children of a process with it, unless they are detached.
  it.skipIf(isWindows)('stops a computing child when the parent is killed', async () => {
    const parent = spawn(process.execPath, [fileURLToPath(forked), 'parent'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let written = '';
    parent.stdout?.on('data', (bytes) => {
      written += bytes;
    });
    await once(parent, 'close'); // the orphan has the same output: it has ended, too
    expect(parent.signalCode).toBe('SIGKILL');
    expect(JSON.parse(written)).toMatchObject({
      name: 'UnavailableError',
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining(`parent process ${parent.pid}`),
    });
  });

  it('stops a computing child when the thread that forked it is terminated', async () => {
    const owner = fileURLToPath(new URL('../../fixtures/terminated-owner.mjs', import.meta.url));
    const program = spawn(process.execPath, [owner, 'fork'], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    // The child has this standard output: it is closed when the child has ended.
    const written = await text(program.stdout as Readable);
    program.disconnect();
    expect(JSON.parse(written)).toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining("Worker 'owner' exited with code 1"), // the parent's stop
    });
  });

  it('refuses wrong arguments, and starts and registers nothing', () => {
    const coord = new Coordinator();
    const call = coord.fork.bind(coord) as (...args: unknown[]) => ChildProcess;
    const refusals: [unknown[], string][] = [
      [[5], 'ERR_INVALID_ARG_TYPE'],
      [[forked, 'plain'], 'ERR_INVALID_ARG_TYPE'],
      [[forked, [1]], 'ERR_INVALID_ARG_TYPE'],
      [[forked, [], 5], 'ERR_INVALID_ARG_TYPE'],
      [[forked, [], { name: 5 }], 'ERR_INVALID_ARG_TYPE'],
      [[forked, [], { nmae: 'cook' }], 'ERR_INVALID_ARG_VALUE'],
      [[forked, [], { stdio: 'pip' }], 'ERR_INVALID_ARG_VALUE'],
      [[forked, [], { stdio: ['pipe'] }], 'ERR_CHILD_PROCESS_IPC_REQUIRED'],
      [[forked, [], { cwd: 5 }], 'ERR_INVALID_ARG_TYPE'],
    ];
    for (const [args, code] of refusals) {
      expect(() => call(...args)).toThrow(expect.objectContaining({ code }));
    }
    expect(coord.threads).toEqual([]);
  });
});
