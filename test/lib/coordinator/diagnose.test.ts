import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator, type Diagnosis, LooperThread, StragglersError } from 'allstop';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { gate } from '../../support/gate.ts';

const script = new URL('../../fixtures/hang-worker.mjs', import.meta.url);
const addonPath = fileURLToPath(
  new URL('../../addons/test-addon/build/Release/test_addon.node', import.meta.url),
);
const isLinux = process.platform === 'linux';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'allstop-hangs-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Those of a test that has failed would block the next one. */
const all = new Set<Hangs>();
afterEach(() => {
  for (const hangs of all) hangs.free();
});

/** Workers of `coord` that hang, each in its own way; `free` ends that. */
class Hangs {
  readonly #coord: Coordinator;
  readonly #words = new Int32Array(new SharedArrayBuffer(4));
  readonly #fifos = new Map<string, string>();

  constructor(coord: Coordinator) {
    this.#coord = coord;
    all.add(this);
  }

  async start(how: string): Promise<Worker> {
    const fifo = join(folder, `${this.#coord.name}-${how}`);
    if (how === 'pipe' || how === 'command') {
      execFileSync('mkfifo', [fifo]);
      this.#fifos.set(how, fifo);
    }
    const workerData = { how, fifo, addon: addonPath, words: this.#words.buffer };
    const worker = this.#coord.spawn(script, { name: how, workerData });
    await once(worker, 'message');
    return worker;
  }

  free(): void {
    if (!all.delete(this)) return;
    this.#coord.requestStop();
    Atomics.store(this.#words, 0, 1);
    Atomics.notify(this.#words, 0);
    const pipe = this.#fifos.get('pipe');
    if (pipe !== undefined) {
      const end = openSync(pipe, 'r+');
      writeSync(end, '.');
      closeSync(end);
    }
    const command = this.#fifos.get('command');
    if (command !== undefined) closeSync(openSync(command, 'w'));
  }
}

/** What the diagnosis says of the thread `name`, in one line. */
function placeOf(diagnosis: Diagnosis, name: string): string {
  const { stack, waitState } = diagnosis.threads.find((thread) => thread.name === name) ?? {};
  return (stack ?? waitState ?? 'not found').replaceAll('\n', ' ');
}

describe.runIf(isLinux)('threads that hang', () => {
  it('are told apart', { tags: 'long' }, async () => {
    const coord = new Coordinator({ name: 'hangs' });
    const hangs = new Hangs(coord);
    const workers = ['spin', 'sleep', 'command', 'computation', 'mutex', 'pipe'];
    for (const how of workers) await hangs.start(how);

    const held = gate();
    void coord.start(() => held.opened, { name: 'lost promise' });
    LooperThread.loop(coord, 10, () => held.opened, { name: 'job' });
    const full = new BoundedQueue<number>({ name: 'full', capacity: 1, coordinator: coord });
    const empty = new BoundedQueue({ name: 'empty', capacity: 1, coordinator: coord });
    full.tryEnqueue(1);
    void coord.start(() => full.enqueue(2), { name: 'producer' });
    void coord.start(() => empty.dequeue(), { name: 'consumer' });
    const child = spawn('cat', { stdio: ['pipe', 'ignore', 'inherit'] });
    coord.registerThread(child, { name: 'reader' });
    const other = new Coordinator({ name: 'other' });
    void other.start(() => held.opened, { name: 'joined' });
    void coord.start(() => other.join(), { name: 'joiner' });
    const hookBegan = gate();
    const endless = (): Promise<void> => {
      hookBegan.open();
      return held.opened;
    };
    coord.onStop(endless, { name: 'endless hook' });

    const diagnosis = await coord.diagnose({ timeoutMs: 5_000 }); // a busy machine takes long

    // The line of code, where JavaScript runs; else what the kernel says of the wait.
    const expected: Record<string, RegExp> = {
      spin: /spin.*hang-worker\.mjs:\d+:\d+/,
      sleep: /sleep .*hang-worker\.mjs:\d+:\d+/,
      command: /blocked in native code.*waits for events.*child processes: \d+ \(\w+\)/,
      computation: /blocked in native code.*computes: R|computation .*hang-worker\.mjs:\d+/,
      mutex: /blocked in native code.*waits for a lock, a condition variable/,
      holder: /waits for a lock, a condition variable/,
      pipe: /blocked in native code.*waits for a pipe.*hangs-pipe/,
      reader: /another process; it waits for (a pipe|a socket).*cat/,
      'lost promise': /awaits a promise.*its function is at .*diagnose\.test\.ts:\d+:\d+/,
      job: /awaits a promise.*its function is at .*diagnose\.test\.ts:\d+:\d+/,
      joiner: /awaits a join\(\) of the coordinator 'other', which waits for: joined/,
      'endless hook': /runs at the stop/,
      none: /not found/,
    };
    const found = Object.fromEntries(
      Object.keys(expected).map((name) => [name, placeOf(diagnosis, name)]),
    );
    for (const [name, where] of Object.entries(expected)) expect(found[name], name).toMatch(where);
    expect(diagnosis.queues).toEqual([
      { name: 'full', size: 1, capacity: 1, waiting: ['1 producer'] },
      { name: 'empty', size: 0, capacity: 1, waiting: ['1 consumer'] },
    ]);
    const text = String(diagnosis);
    for (const name of workers) expect(text).toContain(`  - ${name} (worker `);

    hangs.free();
    await hookBegan.opened;
    expect(placeOf(await coord.diagnose(), 'endless hook')).toMatch(
      /awaits a promise.*its function is at .*diagnose\.test\.ts:\d+:\d+/,
    );
    child.stdin?.end();
    held.open();
    await coord.join();
    await other.join();
  });
});

describe('diagnose', () => {
  it('names the line of a function that awaits a promise, and leaves no trace of the question', async () => {
    const coord = new Coordinator({ name: 'lost' });
    const held = gate();
    void coord.start(() => held.opened, { name: 'lost promise' });
    LooperThread.loop(coord, 10, () => held.opened, { name: 'job' });
    const known = Reflect.ownKeys(globalThis);
    const where = /awaits a promise.*its function is at .*diagnose\.test\.ts:\d+:\d+/;
    const diagnosis = await coord.diagnose();
    expect(placeOf(diagnosis, 'lost promise')).toMatch(where);
    expect(placeOf(diagnosis, 'job')).toMatch(where);
    expect(Reflect.ownKeys(globalThis)).toEqual(known);
    held.open();
    coord.requestStop();
    await coord.join();
  });

  it('names the line of a worker that computes, also after other workers have ended', async () => {
    const ended = new Worker('0', { eval: true });
    await once(ended, 'exit');
    const coord = new Coordinator({ name: 'line' });
    const hangs = new Hangs(coord);
    await hangs.start('spin');
    const { threads, javaScriptThreads } = await coord.diagnose({ timeoutMs: 30_000 });
    expect(threads[0]?.stack).toMatch(/spin.*hang-worker\.mjs:\d+:\d+/);
    expect(threads[0]?.waitState).toBeUndefined();
    const main = javaScriptThreads.find(({ threadId }) => threadId === 0);
    // In a test this thread may be the main thread, or a worker that a main thread waits for.
    expect(main?.stack ?? main?.waitState).toBeTypeOf('string');
    hangs.free();
    await coord.join();
  });

  it('says of an idle worker that it is idle, also beside one that is blocked, asked twice', async () => {
    const coord = new Coordinator({ name: 'idle' });
    const hangs = new Hangs(coord);
    const blocked = isLinux ? await hangs.start('pipe') : undefined;
    const idle = await hangs.start('idle');
    // Its event loop turns soon after the message.
    await vi.waitFor(async () => {
      const both = await Promise.all([coord.diagnose(), coord.diagnose()]);
      for (const diagnosis of both) {
        if (blocked) expect(placeOf(diagnosis, 'pipe')).toMatch(/^blocked in native code/);
        expect(placeOf(diagnosis, 'idle')).toMatch(/^idle in its event loop/);
      }
    }, 20_000);
    hangs.free();
    await coord.join();
    expect([blocked?.threadId ?? -1, idle.threadId]).toEqual([-1, -1]);
  });

  it('leaves no thread paused when its time is too short', async () => {
    const coord = new Coordinator({ name: 'short' });
    const hangs = new Hangs(coord);
    await hangs.start('spin');
    for (const timeoutMs of [0, 1, 5, 50]) await coord.diagnose({ timeoutMs });
    hangs.free();
    await coord.join();
  });

  it('does not wait for a worker that ends meanwhile', async () => {
    const coord = new Coordinator({ name: 'ends' });
    const hangs = new Hangs(coord);
    const worker = await hangs.start('idle');
    const diagnosis = coord.diagnose({ timeoutMs: 600_000 });
    coord.requestStop();
    await worker.terminate();
    expect((await diagnosis).stopped).toBe(true);
    await coord.join();
  });

  it('finds a busy main thread, asked from a worker', async () => {
    const text = execFileSync(process.execPath, [
      fileURLToPath(new URL('../../fixtures/busy-main.mjs', import.meta.url)),
    ]);
    expect(String(text)).toMatch(
      /main \(0\):\n(?: +at .*\n)*? +at .*computesForLong.*busy-main\.mjs:\d+/,
    );
  });

  it('refuses options that are not valid', async () => {
    const coord = new Coordinator();
    await expect(coord.diagnose({ timeoutMs: -1 })).rejects.toThrow(RangeError);
    // @ts-expect-error: no such option
    await expect(coord.diagnose({ timeout: 1 })).rejects.toThrow(TypeError);
  });
});

describe('join({ stacks: true })', () => {
  it('says where the stragglers are', async () => {
    const coord = new Coordinator({ name: 'stragglers' });
    const hangs = new Hangs(coord);
    const worker = await hangs.start('sleep');
    const held = gate();
    void coord.start(() => held.opened, { name: 'lost' });
    coord.requestStop();
    const error: unknown = await coord
      .join({ stopGracePeriodMs: 0, stacks: true })
      .catch((reason: unknown) => reason);
    const [sleeper, lost] = (error as StragglersError).stragglers;
    expect(error).toBeInstanceOf(StragglersError);
    expect(sleeper).toMatchObject({ name: 'sleep', stack: expect.stringMatching(/hang-worker/) });
    expect(lost).toMatchObject({ name: 'lost', waitState: expect.stringMatching(/promise/) });
    const exit = once(worker, 'exit');
    hangs.free();
    held.open();
    await exit;
  });
});
