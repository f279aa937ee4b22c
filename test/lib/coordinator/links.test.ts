import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, getEventListeners, once } from 'node:events';
import { createServer } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Coordinator, DeadlineExceededError, UnavailableError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { collectUntil } from '../../support/collect.ts';
import { turn } from '../../support/gate.ts';

describe('stopOnAbort', () => {
  it('stops plainly for an AbortError', () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    coord.stopOnAbort(controller.signal);
    expect(coord.explain().links).toEqual(['an AbortSignal (stopOnAbort)']);
    controller.abort();
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', requester: { via: 'abort' } });
    expect(coord.stopRecord?.requester.stack).toContain('links.test.ts');
    expect(coord.explain().links).toEqual([]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('stops with any other reason as the error', () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    coord.stopOnAbort(controller.signal);
    const reason = new RangeError('why');
    controller.abort(reason);
    expect(coord.stopRecord).toMatchObject({ kind: 'error', error: reason });
  });

  it('stops with the TimeoutError of AbortSignal.timeout', async () => {
    const coord = new Coordinator();
    coord.stopOnAbort(AbortSignal.timeout(1));
    await coord.waitForStop();
    expect(coord.stopRecord?.error).toMatchObject({ name: 'TimeoutError' });
  });

  it('stops at once if the signal has aborted already', () => {
    const coord = new Coordinator();
    coord.stopOnAbort(AbortSignal.abort());
    expect(coord.shouldStop()).toBe(true);
  });

  it('does nothing once disposed of', () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    const link = coord.stopOnAbort(controller.signal);
    link[Symbol.dispose]();
    link[Symbol.dispose]();
    controller.abort();
    expect(coord.shouldStop()).toBe(false);
    expect(coord.explain().links).toEqual([]);
  });

  it('does not throw after a join, but keeps the error', async () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    coord.stopOnAbort(controller.signal);
    await coord.join();
    controller.abort(new RangeError('late'));
    expect(coord.shouldStop()).toBe(false);
    expect(coord.explain().toString()).toContain('late');
  });

  it('links the signal of one coordinator to another', () => {
    const [one, other] = [new Coordinator(), new Coordinator()];
    other.stopOnAbort(one.signal);
    one.requestStop();
    expect(other.stopRecord?.kind).toBe('plain');
  });
});

describe('stopOnClose', () => {
  it('stops plainly when the resource closes', async () => {
    const coord = new Coordinator();
    const server = createServer().listen(0, '127.0.0.1');
    coord.stopOnClose(server);
    expect(coord.explain().links).toEqual(['a Server, on close (stopOnClose)']);
    server.close();
    await coord.waitForStop();
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', requester: { via: 'close' } });
    expect(server.listenerCount('close')).toBe(0);
  });

  it('stops at once if the resource is closed already', async () => {
    const coord = new Coordinator();
    const stream = new PassThrough();
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    coord.stopOnClose(stream);
    expect(coord.shouldStop()).toBe(true);
  });

  it('watches the events that it is told to', () => {
    const coord = new Coordinator();
    const emitter = new EventEmitter();
    coord.stopOnClose(emitter, { events: ['finish', 'exit'] });
    emitter.emit('close');
    expect(coord.shouldStop()).toBe(false);
    emitter.emit('exit');
    expect(coord.shouldStop()).toBe(true);
    expect(emitter.eventNames()).toEqual([]);
  });

  it("takes the resource's own error, if asked for an error", async () => {
    const coord = new Coordinator();
    const stream = new Readable({ read() {} });
    stream.on('error', () => {});
    coord.stopOnClose(stream, { as: 'error' });
    const error = new RangeError('broken');
    stream.destroy(error);
    await coord.waitForStop();
    expect(coord.stopRecord?.error).toBe(error);
  });

  it('takes the error that an event brings along', () => {
    const coord = new Coordinator();
    const emitter = new EventEmitter();
    coord.stopOnClose(emitter, { events: ['error'], as: 'error' });
    const error = new RangeError('brought');
    emitter.emit('error', error);
    expect(coord.stopRecord?.error).toBe(error);
  });

  it('makes an UnavailableError, if the resource has none', () => {
    const coord = new Coordinator();
    const emitter = new EventEmitter();
    coord.stopOnClose(emitter, { as: 'error' });
    emitter.emit('close');
    expect(coord.stopRecord?.error).toBeInstanceOf(UnavailableError);
    expect(coord.stopRecord?.error).toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
  });

  it('takes no end for an error that comes after the stop', async () => {
    const [plain, broken] = [new Coordinator(), new Coordinator()];
    const [closing, failing] = [new EventEmitter(), new EventEmitter()];
    plain.stopOnClose(closing, { as: 'error' });
    broken.stopOnClose(failing, { events: ['error'], as: 'error' });
    for (const coord of [plain, broken]) coord.requestStop();
    closing.emit('close');
    failing.emit('error', new RangeError('its own'));
    expect(plain.stopRecord?.suppressed).toEqual([]);
    expect(broken.stopRecord?.suppressed).toMatchObject([{ error: { message: 'its own' } }]);
    const stopped = Coordinator.run((coord) => {
      const code = "require('allstop').Coordinator.current().waitForStopSync()";
      coord.stopOnClose(coord.spawn(code, { eval: true }), { as: 'error' });
      coord.requestStop();
    });
    await expect(stopped).resolves.toBeUndefined();
  });

  it('stops when a Worker ends, or has ended, with whatever exit code', async () => {
    const coords = [new Coordinator(), new Coordinator(), new Coordinator({ name: 'server' })];
    const [running, ended, failing] = coords as [Coordinator, Coordinator, Coordinator];
    const worker = new Worker('process.exit(0)', { eval: true });
    running.stopOnClose(worker);
    failing.stopOnClose(worker, { as: 'error' });
    await once(worker, 'exit');
    ended.stopOnClose(worker);
    expect(coords.map((coord) => coord.stopRecord?.kind)).toEqual(['plain', 'plain', 'error']);
    expect(failing.stopRecord?.error).toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message:
        "The coordinator 'server' depends on a Worker, which emitted 'exit': it has exited with code 0",
    });
  });

  it('takes the error of a Worker, with its class', async () => {
    const coord = new Coordinator();
    const plain = new Worker("throw new RangeError('the database is gone')", { eval: true });
    coord.stopOnClose(plain, { as: 'error' });
    await coord.waitForStop();
    expect(coord.stopRecord?.error).toBeInstanceOf(RangeError);
    expect(coord.stopRecord?.error).toMatchObject({ message: 'the database is gone' });
    for (const events of [['error'], ['error', 'exit'], ['exit', 'error']]) {
      const listening = new Coordinator();
      const ours = new Worker(
        "const { UnavailableError } = require('allstop'); throw new UnavailableError('ours')",
        { eval: true },
      );
      listening.stopOnClose(ours, { events, as: 'error' });
      await listening.waitForStop();
      expect(listening.stopRecord?.error).toBeInstanceOf(UnavailableError);
      expect(listening.stopRecord?.error).toMatchObject({ message: 'ours' });
    }
    const [back, front] = [new Coordinator(), new Coordinator()];
    const code = "throw Object.assign(new TypeError('of back'), { part: 1n })";
    front.stopOnClose(back.spawn(code, { eval: true }), { as: 'error' });
    await front.waitForStop();
    expect(front.stopRecord?.error).toBe(back.stopRecord?.error);
  });

  it('says how a Worker or a process has ended that had no error', async () => {
    const message = async (resource: Worker | ChildProcess) => {
      const coord = new Coordinator({ name: 'server' });
      coord.stopOnClose(resource, { as: 'error' });
      await coord.waitForStop();
      return String(coord.stopRecord?.error);
    };
    expect(await message(new Worker('process.exit(7)', { eval: true }))).toMatch(
      /depends on a Worker, which emitted 'exit': it has exited with code 7$/,
    );
    expect(await message(spawn(process.execPath, ['-e', 'process.exit(7)']))).toMatch(
      /depends on a ChildProcess, which emitted 'close': it has exited with code 7$/,
    );
    const killed = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)']);
    killed.kill('SIGKILL');
    expect(await message(killed)).toMatch(/emitted 'close': it was killed by SIGKILL$/);
    expect(await message(killed)).toMatch(/emitted 'close': it was killed by SIGKILL$/); // already
    const coord = new Coordinator({ name: 'server' });
    const posts = new Worker("require('worker_threads').parentPort.postMessage(7)", { eval: true });
    coord.stopOnClose(posts, { events: ['message'], as: 'error' });
    await coord.waitForStop();
    expect(String(coord.stopRecord?.error)).toMatch(/a Worker, which emitted 'message'$/);
  });

  it('works with an EventTarget', () => {
    const coord = new Coordinator();
    const target = new EventTarget();
    coord.stopOnClose(target);
    target.dispatchEvent(new Event('close'));
    expect(coord.shouldStop()).toBe(true);
  });

  it('does nothing once disposed of', () => {
    const coord = new Coordinator();
    const emitter = new EventEmitter();
    coord.stopOnClose(emitter)[Symbol.dispose]();
    emitter.emit('close');
    expect(coord.shouldStop()).toBe(false);
    expect(emitter.eventNames()).toEqual([]);
  });
});

describe('stopAfter', () => {
  it('stops with a DeadlineExceededError', async () => {
    const coord = new Coordinator();
    coord.stopAfter(500);
    expect(coord.explain().links).toEqual(['a deadline of 500 ms (stopAfter)']);
    expect(await coord.waitForStop()).toBe(true);
    expect(coord.stopRecord?.error).toBeInstanceOf(DeadlineExceededError);
    expect(coord.stopRecord?.requester).toMatchObject({ via: 'timeout' });
    expect(coord.stopRecord?.requester.stack).toContain('links.test.ts');
  });

  it('stops though this thread is blocked, or busy', () => {
    const blocked = new Coordinator();
    blocked.stopAfter(5);
    expect(blocked.waitForStopSync()).toBe(true);
    const busy = new Coordinator();
    busy.stopAfter(5);
    while (!busy.shouldStop());
    expect(busy.stopRecord?.kind).toBe('error');
  });

  it('does nothing once disposed of, or when it is for ever', async () => {
    const coord = new Coordinator();
    coord.stopAfter(200)[Symbol.dispose]();
    coord.stopAfter(Number.POSITIVE_INFINITY)[Symbol.dispose]();
    coord.stopAfter(1e300);
    coord.stopAfter(2 ** 31);
    const later = new Coordinator();
    later.stopAfter(250);
    await later.waitForStop();
    expect(coord.shouldStop()).toBe(false);
  });
});

it('a deadline that has fired is let go of when its stop is cleared', async () => {
  const coord = new Coordinator();
  const link = new WeakRef(coord.stopAfter(0));
  await coord.waitForStop();
  await turn();
  coord.clearStop();
  await collectUntil(() => link.deref() === undefined);
  expect(coord.shouldStop()).toBe(false);
});

// Elsewhere nothing limits the memory of a program that runs.
describe.runIf(process.platform === 'linux')('a system without a thread left', () => {
  it('is a typed error of the links that count time, and leaves nothing of them', async () => {
    const script = fileURLToPath(new URL('../../fixtures/without-threads.mjs', import.meta.url));
    const program = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    expect(await text(program.stdout)).toBe(
      [
        'stopAfter threw ERR_ALLSTOP_UNAVAILABLE, there are 0',
        'exitAfterStop threw ERR_ALLSTOP_UNAVAILABLE, there are 0',
        'stopAfter made a link, there are 1',
        'exitAfterStop made a link, there are 2',
        '',
      ].join('\n'),
    );
  });
});

describe('a link', () => {
  it('keeps a deadline standing when every object is collected', async () => {
    const collected: string[] = [];
    const registry = new FinalizationRegistry<string>((name) => collected.push(name));
    const handle = (() => {
      const coord = new Coordinator();
      registry.register(coord, 'the coordinator');
      coord.stopAfter(500);
      return coord.handle;
    })();
    await collectUntil(() => collected.length === 1);
    expect(await Coordinator.attach(handle).waitForStop(20_000)).toBe(true);
  });

  it('is no link any more once it has fired', async () => {
    const coord = new Coordinator();
    coord.stopAfter(1);
    await coord.waitForStop();
    coord.clearStop();
    expect(coord.explain().links).toEqual([]);
  });

  it('is undone when the coordinator is disposed of, or its run is over', async () => {
    const controller = new AbortController();
    const emitter = new EventEmitter();
    const link = (coord: Coordinator): void => {
      coord.stopOnAbort(controller.signal);
      coord.stopOnClose(emitter);
      coord.stopOnSignals(['SIGUSR2']);
      coord.stopAfter(60_000);
    };
    const coord = new Coordinator();
    link(coord);
    await coord[Symbol.asyncDispose]();
    await Coordinator.run(link);
    expect(coord.explain().links).toEqual([]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    expect(emitter.eventNames()).toEqual([]);
    expect(process.listenerCount('SIGUSR2')).toBe(0);
  });

  it('may be one of many to the same signal, without a warning', () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const controller = new AbortController();
    const coords = Array.from({ length: 50 }, () => new Coordinator());
    for (const coord of coords) coord.stopOnAbort(controller.signal);
    const links = coords.map((coord) => coord.stopOnSignals(['SIGUSR2']));
    controller.abort();
    expect(coords.every((coord) => coord.shouldStop())).toBe(true);
    for (const each of links) each[Symbol.dispose]();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('makes an echo of the reason that it stopped for', async () => {
    const coord = new Coordinator();
    const controller = new AbortController();
    coord.stopOnAbort(controller.signal);
    controller.abort();
    await coord.start(() => controller.signal.throwIfAborted());
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });
});
