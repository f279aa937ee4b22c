import { type ChildProcess, spawn } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { BoundedQueue, Coordinator, OutOfRangeError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate } from '../../support/gate.ts';
import { addon } from '../../support/test-addon.ts';

function words(coord: Coordinator): string {
  return coord.explain().toString();
}

describe('explain', () => {
  it('says that nobody asked, and which links could', () => {
    const coord = new Coordinator({ name: 'pipeline' });
    expect(coord.explain()).toMatchObject({ stopped: false, threads: [], links: [] });
    expect(words(coord)).toBe(
      "The coordinator 'pipeline' is not stopped: no stop was requested.\n" +
        'No link could stop it, only a call or an error.',
    );
    coord.stopOnAbort(new AbortController().signal);
    coord.stopAfter(60_000);
    expect(words(coord)).toContain(
      'Links: an AbortSignal (stopOnAbort); a deadline of 60000 ms (stopAfter).',
    );
  });

  it('says who asked, when, and from where', () => {
    const coord = new Coordinator({ name: 'pipeline' });
    coord.requestStop();
    expect(words(coord)).toMatch(
      /^The coordinator 'pipeline' was stopped at \d\d:\d\d:\d\d\.\d{3} [+-]\d\d:\d\d \(\d+ ms ago\): the JavaScript thread 'main' \(0\) called requestStop\(\)\.\nNo error was reported\.\nRequested from:\n {4}at .*explain\.test\.ts/,
    );
  });

  it('shows control characters of names and messages as escapes', () => {
    const coord = new Coordinator({ name: 'a\u001B[31m' });
    coord.requestStop(new Error('red\u001B[2J\u0007'));
    const text = words(coord);
    expect(text).toMatch(/^The coordinator 'a\\x1b\[31m' was stopped/);
    expect(text).toContain('red\\x1b[2J\\x07');
    expect(text).not.toMatch(/(?![\n\t])\p{Cc}/u);
  });

  it('gives no name a line of its own', async () => {
    const coord = new Coordinator({ name: 'app' });
    const end = coord.start(() => coord.waitForStop(), {
      name: "x\nThe coordinator 'app' is fine",
    });
    coord.requestStop(Object.assign(new Error('broken'), { name: 'E\nF' }));
    for (const text of [words(coord), String(await coord.diagnose())]) {
      expect(text).toContain("\n  - x\\x0aThe coordinator 'app' is fine (task)");
      expect(text).toContain('\nThe error: E\\x0aF: broken.');
    }
    await end;
  });

  it('says where the link was made whose cause stopped it', () => {
    const coord = new Coordinator();
    coord.stopOnAbort(AbortSignal.abort());
    expect(words(coord)).toMatch(/\nLinked at:\n {4}at .*explain\.test\.ts/);
    expect(words(coord)).not.toContain('Requested from:');
  });

  it('says with what error, and what was suppressed', () => {
    const coord = new Coordinator();
    coord.requestStop(Object.assign(new RangeError('first'), { code: 'E_FIRST' }));
    coord.requestStop(new TypeError('second'));
    coord.requestStop('third');
    const text = words(coord);
    expect(text).toContain('The error: RangeError: first (E_FIRST).');
    expect(text).toContain('Suppressed since then: 2.');
    expect(text).toMatch(/- \d\d:.* TypeError: second, as the JavaScript thread 'main' \(0\)/);
    expect(text).toContain('the value "third"');
  });

  it.each<[error: unknown, text: string | RegExp]>([
    [runInNewContext('new RangeError("disk full")'), 'RangeError: disk full'],
    [Number.NaN, 'the value NaN'],
    [-0, 'the value -0'],
    [5n, 'the value 5n'],
    [new Map([['disk', 'full']]), "the value Map(1) { 'disk' => 'full' }"],
    [{ disk: 'full\nnow' }, String.raw`the value { disk: 'full\nnow' }`],
    ['x'.repeat(1_000), `the value "${'x'.repeat(1_000)}"`],
    [Array.from({ length: 1_000 }, () => 'full'), /the value \[ ('full', )+.{0,10}…\.\n/],
  ])('shows any thrown value as what it is: %o', (error, text) => {
    const coord = new Coordinator();
    coord.requestStop(error);
    const said = words(coord);
    if (typeof text === 'string') expect(said).toContain(`\nThe error: ${text}.\n`);
    else expect(said).toMatch(text);
  });

  it('says that a stop was clean', () => {
    const coord = new Coordinator();
    coord.requestStop(new OutOfRangeError('all read'));
    expect(words(coord)).toContain('It counts as a clean stop: OutOfRangeError: all read');
  });

  it('names the native thread and its C++ exception', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'throw', 'explained', 'disk full');
    addon.openGate('explained');
    await coord.join().catch(() => {});
    const text = words(coord);
    expect(text).toMatch(/the native thread 'explained' \(\d+\) reported an error/);
    expect(text).toContain('CustomError]: disk full');
  });

  it('names the process that died, the signal that killed it, and one that did not start', async () => {
    const stopBy = async (child: ChildProcess): Promise<string> => {
      const coord = new Coordinator();
      coord.registerThread(child, { name: 'child' });
      await coord.waitForStop();
      await coord.join().catch(() => {});
      return words(coord);
    };
    const exits = spawn(process.execPath, ['-e', 'process.exit(3)']);
    expect(await stopBy(exits)).toContain(`: the process 'child' (${exits.pid}) died.`);
    const killed = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    killed.once('spawn', () => killed.kill('SIGKILL'));
    expect(await stopBy(killed)).toContain(
      `: the process 'child' (${killed.pid}) was killed by SIGKILL.`,
    );
    const missing = spawn('no such program');
    expect(await stopBy(missing)).toContain(": the process 'child' did not start.");
  });

  it('says which threads run, since when, and which have ended', async () => {
    const coord = new Coordinator();
    const held = gate();
    void coord.start(() => held.opened, { name: 'running' });
    await coord.start(() => {}, { name: 'done' });
    const { threads, recentlyEnded } = coord.explain();
    expect(threads).toMatchObject([{ name: 'running', kind: 'task', alive: true }]);
    expect(recentlyEnded).toMatchObject([{ name: 'done', kind: 'task', alive: false }]);
    expect(words(coord)).toMatch(
      /Still running \(1\):\n {2}- running \(task\): running since \d\d:/,
    );
    expect(words(coord)).toMatch(/Ended \(1\):\n {2}- done \(task\): ended \d+ ms ago/);
    held.open();
  });

  it('says how full the queues are, and who waits', async () => {
    const coord = new Coordinator();
    const full = new BoundedQueue<number>({ name: 'frames', capacity: 1, coordinator: coord });
    const empty = new BoundedQueue({ name: 'results', capacity: 8, coordinator: coord });
    await full.enqueue(1);
    const waits = [full.enqueue(2), full.enqueue(3), empty.dequeue()];
    await new Promise(setImmediate);
    expect(coord.explain().queues).toEqual([
      { name: 'frames', size: 1, capacity: 1, waiting: ['2 producers'] },
      { name: 'results', size: 0, capacity: 8, waiting: ['1 consumer'] },
    ]);
    expect(words(coord)).toContain(
      'Queues (2):\n  - frames: 1 of 1 items (full); waiting: 2 producers\n' +
        '  - results: 0 of 8 items (empty); waiting: 1 consumer',
    );
    coord.requestStop();
    await Promise.allSettled(waits);
    expect(coord.explain().queues).toMatchObject([{ waiting: [] }, { waiting: [] }]);
  });

  it('says that the coordinator is joined', async () => {
    const coord = new Coordinator();
    await coord.join();
    expect(words(coord)).toContain('It has been joined');
  });

  it('keeps the last 64 threads that ended', async () => {
    const coord = new Coordinator();
    for (let i = 0; i < 70; i++) await coord.start(() => {}, { name: `task-${i}` });
    const names = coord.explain().recentlyEnded.map(({ name }) => name);
    expect(names).toEqual(Array.from({ length: 64 }, (_, i) => `task-${i + 6}`));
  });

  it('shows whatever was thrown', () => {
    for (const value of [0, Symbol('s'), () => {}, Object.create(null), { toString: null }, 1n]) {
      const coord = new Coordinator();
      coord.requestStop(value);
      expect(words(coord)).toContain('The error: ');
    }
  });
});

describe('stopLatencies', () => {
  it('says how long each thread took, the slowest first', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: 0 });
    expect(coord.explain().stopLatencies).toEqual([]);
    const stuck = gate();
    void coord.start(() => stuck.opened, { name: 'stuck' });
    const quick = coord.start((own) => own.waitForStop(), { name: 'quick' });
    await coord.start(() => {}, { name: 'ended before' });
    coord.requestStop();
    await quick;
    await coord.join({ ignoreLiveThreads: true });
    const { stopLatencies } = coord.explain();
    expect(stopLatencies).toEqual([
      { thread: 'stuck', kind: 'task', isStraggler: true },
      { thread: 'quick', kind: 'task', endedMs: expect.any(Number) },
      { thread: 'main', kind: 'thread', seenMs: expect.any(Number) },
    ]);
    expect(words(coord)).toMatch(
      /How fast its threads followed the stop:\n {2}- saw the stop: \d within \d+ ms.*main \d+\.\d ms.*\)\n {2}- ended: 1 within \d+ ms \(quick \d/,
    );
    stuck.open();
  });
});
