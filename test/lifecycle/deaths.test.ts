// Workers, processes and promises that fail in every way: each failure is an error, except an end
// that a stop has asked for.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError, UnavailableError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { runScript, saidOf, startScript } from '../support/run-script.ts';

const script = (name: string): URL => new URL(`./scripts/${name}.mjs`, import.meta.url);

/** The error that `join()` throws. */
async function joinError(coord: Coordinator): Promise<unknown> {
  try {
    await coord.join();
  } catch (error) {
    return error;
  }
  throw new Error('join() did not throw');
}

function spawnWorker(coord: Coordinator, way: string): Worker {
  return coord.spawn(script('dies'), { workerData: way, name: 'mortal' });
}

function spawnProcess(way: string): ChildProcess {
  return spawn(process.execPath, [script('dies').pathname, way], { stdio: 'ignore' });
}

describe('a worker', () => {
  it.each(['throws', 'throws later', 'rejects'])('that %s: the error, intact', async (way) => {
    const coord = new Coordinator();
    spawnWorker(coord, way);
    const error = (await joinError(coord)) as RangeError & Record<string, unknown>;
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ name: 'QuotaError', message: 'over quota', code: 'E_QUOTA' });
    expect(error['used']).toBe(12n);
    expect(error['by']).toEqual(new Map([['a', new Set([1])]]));
    expect(error['self']).toBe(error);
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(error.cause).toMatchObject({ message: 'the cause', cause: 7 });
    expect(error.stack).toContain('dies.mjs');
    const requester = { via: 'worker-exit', threadName: 'mortal' };
    expect(coord.stopRecord).toMatchObject({ kind: 'error', requester });
    expect(await joinError(coord)).toBe(error);
  });

  it('that rejects with undefined: an error all the same', async () => {
    const coord = new Coordinator();
    spawnWorker(coord, 'rejects with undefined');
    expect(await joinError(coord)).toMatchObject({ code: 'ERR_UNHANDLED_REJECTION' });
  });

  it('that throws a clean error: a clean stop', async () => {
    const coord = new Coordinator();
    spawnWorker(coord, 'throws a clean error');
    await coord.join();
    const { kind, error } = coord.stopRecord ?? {};
    expect(kind).toBe('clean');
    expect(error).toBeInstanceOf(OutOfRangeError);
  });

  it('that handles its error and ends well: no stop', async () => {
    const coord = new Coordinator();
    spawnWorker(coord, 'handles its error');
    await coord.join();
    expect(coord.shouldStop()).toBe(false);
  });

  it('that knows nothing of us: class, code, fields and cause', async () => {
    const coord = new Coordinator();
    coord.spawn(script('dies-alone'));
    const error = (await joinError(coord)) as RangeError;
    expect(error).toBeInstanceOf(RangeError);
    const fields = { message: 'unknown to us', code: 'E_ALONE', field: [1], cause: 'a string' };
    expect(error).toMatchObject(fields);
  });

  it.each([
    ['exits', 3],
    ['exits with 1', 1],
  ])('that %s: the code', async (way, exitCode) => {
    const coord = new Coordinator();
    spawnWorker(coord, way);
    const error = await joinError(coord);
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({
      exitCode,
      message: expect.stringContaining(
        `Worker 'mortal' exited with code ${exitCode} without an error`,
      ),
    });
  });

  it.each([
    ['throws', { name: 'TypeError', message: 'the true cause' }],
    ['exits', { code: 'ERR_ALLSTOP_UNAVAILABLE', exitCode: 3 }],
    ['runs out of memory', { code: 'ERR_WORKER_OUT_OF_MEMORY' }],
  ])('that %s while it has a task: its own error, not the loss of the task', async (way, error) => {
    for (const busyMs of [0, 1_000]) {
      const coord = new Coordinator();
      const worker = coord.spawn(script('dies-with-tasks'), {
        workerData: way,
        resourceLimits: { maxOldGenerationSizeMb: 24 },
      });
      await once(worker, 'message');
      worker.postMessage('die');
      // Meanwhile the worker dies, and this thread, which watches it, cannot hear of that.
      coord.waitForStopSync(busyMs);
      expect(await joinError(coord), `busy for ${busyMs} ms`).toMatchObject(error);
    }
  });

  it.each(['terminate', 'exit'])(
    'that is ended by %s in the middle of a spawn: it ends',
    async (how) => {
      const running = startScript('terminated-spawner', [how]);
      const limit = setTimeout(() => running.kill('SIGKILL'), 120_000);
      expect(await running.ended).toMatchObject({
        code: 7,
        signal: null,
        said: [{ event: 'ended' }],
      });
      clearTimeout(limit);
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'that is terminated in the middle of a fork: it leaves no pipe open',
    async () => {
      const ended = await runScript('terminated-forker');
      expect(saidOf(ended, 'terminated')).toMatchObject({ hadMore: true, left: 0 });
    },
  );

  it('that is terminated before a stop: an error', async () => {
    const coord = new Coordinator();
    const worker = spawnWorker(coord, 'stays');
    await once(worker, 'message');
    await worker.terminate();
    expect(await joinError(coord)).toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE', exitCode: 1 });
  });

  it.each(['a stop', 'a stop that was cleared'])(
    'that is terminated after %s: no error',
    async (what) => {
      const coord = new Coordinator();
      const worker = spawnWorker(coord, 'stays');
      await once(worker, 'message');
      coord.requestStop();
      if (what !== 'a stop') coord.clearStop();
      await worker.terminate();
      await coord.join();
      expect(coord.stopRecord?.kind).toBe(what === 'a stop' ? 'plain' : undefined);
      expect(coord.stopRecord?.suppressedCount ?? 0).toBe(0);
    },
  );

  it('that dies of an error after a stop: suppressed', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    spawnWorker(coord, 'throws');
    await coord.join();
    expect(coord.stopRecord).toMatchObject({
      kind: 'plain',
      suppressed: [{ error: { name: 'QuotaError' }, requester: { threadName: 'mortal' } }],
    });
  });
});

describe('a process', () => {
  it('that exits with a code: an error that says so', async () => {
    const coord = new Coordinator();
    const child = spawnProcess('exits');
    coord.registerThread(child, { name: 'mortal' });
    const error = await joinError(coord);
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({
      exitCode: 3,
      message: "Process 'mortal' exited with code 3: see its output",
    });
    const { requester } = coord.stopRecord ?? {};
    expect(requester).toMatchObject({ via: 'worker-exit', pid: child.pid, threadName: 'mortal' });
  });

  it('that had exited when it was registered: the same', async () => {
    const coord = new Coordinator();
    const child = spawnProcess('exits');
    await once(child, 'exit');
    coord.registerThread(child);
    expect(coord.threads).toEqual([]);
    expect(await joinError(coord)).toMatchObject({ exitCode: 3 });
  });

  it('that is killed before a stop: an error that names the signal', async () => {
    const coord = new Coordinator();
    const child = spawnProcess('stays');
    coord.registerThread(child, { name: 'mortal' });
    await once(child, 'spawn');
    child.kill('SIGKILL');
    const error = await joinError(coord);
    expect(error).toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      exitSignal: 'SIGKILL',
      message: "Process 'mortal' was killed by SIGKILL",
    });
    expect(coord.stopRecord?.requester).toMatchObject({ signal: 'SIGKILL', via: 'worker-exit' });
  });

  it('that is killed after a stop: no error', async () => {
    const coord = new Coordinator();
    const child = spawnProcess('stays');
    coord.registerThread(child);
    await once(child, 'spawn');
    coord.requestStop();
    child.kill('SIGTERM');
    await coord.join();
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressedCount: 0 });
  });

  it('that exits with a code after a stop: an error, suppressed', async () => {
    const coord = new Coordinator();
    const child = spawnProcess('exits');
    coord.registerThread(child);
    coord.requestStop();
    await coord.join();
    expect(coord.stopRecord).toMatchObject({
      kind: 'plain',
      suppressed: [{ error: { exitCode: 3 } }],
    });
  });

  it('that cannot be started: why', async () => {
    const coord = new Coordinator();
    coord.registerThread(spawn('/no/such/program'), { name: 'unborn' });
    expect(await joinError(coord)).toMatchObject({ code: 'ENOENT', path: '/no/such/program' });
    expect(coord.threads).toEqual([]);
  });
});

describe('a promise', () => {
  it.each([undefined, null, 0, '', new OutOfRangeError('not clean here')])(
    'that rejects with %s: that value, identically',
    async (reason) => {
      const coord = new Coordinator({ cleanStopErrors: [] });
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      coord.registerThread(Promise.reject(reason));
      await coord.waitForStop();
      expect(coord.stopRecord?.kind).toBe('error');
      expect(await joinError(coord)).toBe(reason);
    },
  );
});
