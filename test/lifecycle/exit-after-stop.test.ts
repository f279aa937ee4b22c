// exitAfterStop: real processes that would not end by themselves.

import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { type Ended, runScript, startScript } from '../support/run-script.ts';

const runs = new Map<string, Promise<Ended>>();

/** A run of a script: the same for all stories of it. */
async function runOf(script: string, ...args: string[]): Promise<Ended> {
  const key = JSON.stringify([script, args]);
  const ended = runs.get(key) ?? runScript(script, args, { concurrent: true });
  runs.set(key, ended);
  return await ended;
}

const run = async (way: string, stop: string, options: object = {}): Promise<Ended> =>
  runOf('exit-after-stop', way, stop, JSON.stringify(options));

// The processes wait for most of their time, so they do it side by side.
describe('exitAfterStop ends a process', { concurrent: true }, () => {
  it.each(['is idle', 'computes', 'waits', 'runs a command'])(
    'whose main thread %s, and says who is left',
    async (way) => {
      const { code, stderr } = await run(way, 'error');
      expect(code).toBe(1);
      const ms = way === 'computes' ? 50 : 500;
      expect(stderr.split('\n')[0]).toMatch(
        new RegExp(`^allstop: process \\d+ exits with code 1, ${ms} ms after the stop of 'app' `),
      );
      expect(stderr).toContain("the JavaScript thread 'main' (0) requested the stop, with ");
      expect(stderr).toContain('TypeError: the disk is full\n');
      expect(stderr).toMatch(/1 still running:\n {2}- 'http' \(task\): running for /);
    },
  );

  it.each(['is idle', 'computes'])(
    'whose main thread %s, and shows the stack of the error and of its cause',
    async (way) => {
      const { stderr } = await run(way, 'error');
      expect(stderr).toMatch(
        / {4}TypeError: the disk is full\n {4}and more\n {8}at .*exit-after-stop\.mjs:\d+:\d+\)?\n/,
      );
      expect(stderr).toMatch(
        / {4}Caused by RangeError: no space is left\n {8}at .*exit-after-stop\.mjs:\d+:\d+\)?\n/,
      );
    },
  );

  it('and says which hooks have not begun', async () => {
    const { stderr } = await run('is idle', 'hooks');
    expect(stderr).toMatch(
      / {2}- 'close http' \(hook\): running for [\d.]+ m?s\n {2}- 'close db' \(hook\): has not begun, [\d.]+ m?s after the stop\n/,
    );
  });

  it('and names the threads of another coordinator, for which a hook waits', async () => {
    const { stderr } = await run('is idle', 'another coordinator');
    expect(stderr).toMatch(/2 still running:\n.*'http'.*\n.*- 'close back' \(hook\): running for /);
    expect(stderr).toMatch(
      /2001 still running of the coordinator 'back', which is stopped, too:\n {2}- 'database\\x0a\\x1b\[31m' \(task\): /,
    );
    expect(stderr).toContain('  - and more\n');
    expect(stderr.length).toBeLessThan(20_000);
    expect(stderr).not.toContain('goes on');
  });

  it.each(['a deferred function that hangs', 'a deferred function that nobody settles'])(
    'and names %s',
    async (way) => {
      const { code, stderr } = await runOf('run-and-hang', way);
      expect(code).toBe(1);
      expect(stderr).toMatch(/1 still running:\n {2}- 'close db' \(task\): running for /);
    },
  );

  it('and says that the body of Coordinator.run has not returned', async () => {
    const { code, stderr } = await runOf('run-and-hang', 'a body that hangs');
    expect(code).toBe(1);
    expect(stderr).toContain('no registered thread is left\n');
    expect(stderr).toMatch(
      / {2}- the function that was given to Coordinator\.run runs for [\d.]+ m?s\n/,
    );
  });

  it('and says that nothing registered keeps it alive', async () => {
    const { code, stderr } = await runOf('run-and-hang', 'a body that has returned');
    expect(code).toBe(1);
    expect(stderr).toContain('what keeps the process alive is not registered');
    expect(stderr).not.toContain('Coordinator.run');
  });

  it.runIf(process.platform === 'linux')('or that the main thread computes', async () => {
    const { stderr } = await runOf('run-and-hang', 'a body that has returned, and a loop');
    expect(stderr).toContain('is left: the main thread does not return to its event loop\n');
  });

  it.runIf(process.platform === 'linux').each([
    ['is idle', /the main thread waits for events/],
    ['computes', /the main thread is computing/],
    ['waits', /the main thread is blocked/],
  ])('and says what the main thread does that %s', async (way, words) => {
    expect((await run(way, 'error')).stderr).toMatch(words);
  });

  it('and shows an error of a native thread once, with its type', async () => {
    const { stderr } = await run('is idle', 'native error');
    expect(stderr).toMatch(/ {4}NativeError \[.*CustomError\]: the disk is full\n/);
    expect(stderr.match(/ {4}NativeError/g)).toHaveLength(1);
  });

  it('and no name and no text steers the terminal or forges a line', async () => {
    const { stderr } = await run('is idle', 'forged error');
    const name = 'Forged\\x0aallstop: Error\\x1b[33m';
    const text = 'full\\x0dallstop: forged\\x1b[31m\\x9b2J';
    expect(stderr).toContain(`requested the stop, with ${name}: ${text}\n`);
    expect(stderr).toContain(`${text}\n    \tand\\x1b[32m more\n`);
    expect(stderr).not.toContain('\x1b');
    expect(stderr).not.toContain('\r');

    const { stderr: other } = await run('is idle', 'forged thread');
    expect(other).toContain("the native thread 'reader\\x0aallstop: forged\\x1b[34m' (");
    expect(other).not.toContain('\x1b');
  });

  it('and says which process has died', async () => {
    const { stderr } = await run('is idle', 'dead process');
    expect(stderr).toMatch(
      /allstop: the process 'child\\x1b\[31m' \(\d+\) died, with UnavailableError: /,
    );
  });

  it.runIf(process.platform === 'linux')('and says where a native thread is blocked', async () => {
    const { stderr } = await run('is idle', 'native');
    expect(stderr).toMatch(/- 'reader' \(native \d+\): running for [\d.]+ m?s, is blocked/);
  });

  it.runIf(process.platform === 'linux').each([
    ['worker', 'computes', /- 'deaf' \(worker \d+\): running for [\d.]+ m?s, is computing/],
    ['worker', 'waits', /- 'deaf' \(worker \d+\): running for [\d.]+ m?s, is blocked/],
    ['child', 'computes', /- 'deaf' \(process \d+\): running for [\d.]+ m?s, is computing/],
    ['child', 'waits', /- 'deaf' \(process \d+\): running for [\d.]+ m?s, is blocked/],
  ])('and says of a %s that it %s', async (kind, way, line) => {
    const { code, stderr } = await runOf('exit-with-threads', kind, way);
    expect(code).toBe(1);
    expect(stderr).toMatch(line);
  });

  it('with the exit code that it was given', async () => {
    expect((await run('computes', 'error', { exitCode: 0 })).code).toBe(0);
    expect((await run('computes', 'call', { exitCode: 77 })).code).toBe(77);
  });

  it.runIf(process.platform !== 'win32').each([
    ['', 'signal'],
    [' that stopped the parent of its coordinator', 'parent'],
  ])('with 128 + n after a signal%s', async (_, stop) => {
    const script = startScript('exit-after-stop', ['is idle', stop, '{}'], { concurrent: true });
    await script.says('ready');
    script.kill('SIGTERM');
    const { code, stderr } = await script.ended;
    expect(code).toBe(143);
    expect(stderr).toContain('allstop: the process received SIGTERM');
  });

  it.each([
    ['thread', /- worker:\d \(thread \d+\) runs 'announceAndSpin' for [\d.]+ m?s/],
    ['process', /- worker:\d \(process \d+\) runs 'announceAndSpin' for [\d.]+ m?s/],
  ])('and names the function that a %s of its cluster computes', async (isolation, line) => {
    const { code, stderr } = await runOf('exit-with-cluster', isolation, 'left');
    expect(code).toBe(1);
    expect(stderr).toContain('functions that have not returned:');
    expect(stderr).toMatch(line);
    if (process.platform === 'linux') expect(stderr).toMatch(/announceAndSpin.*, is computing\n/);
    expect(stderr.match(/announceAndSpin/g)).toHaveLength(1);
  });

  it('and names the functions of a pool that the stop closes, those of its drain, too', async () => {
    const { said, stderr } = await runOf('exit-with-pool');
    const text = expect.stringMatching(/Workers \(2\):[^]*runs 'announceAndBlock' for/);
    expect(said).toContainEqual({ event: 'explained', text });
    expect(stderr.match(/- worker:\d \(thread \d+\) runs 'announceAndBlock' for/g)).toHaveLength(2);
    expect(stderr).toContain("'pool' (hook)");
  });

  it('and no name of a function that has not returned steers the terminal or forges a line', async () => {
    const { stderr } = await runOf(
      'exit-with-cluster',
      'thread',
      'left',
      'block\nallstop: forged\x1b[31m',
    );
    expect(stderr).toContain('block\\x0aallstop: forged\\x1b[31m');
    expect(stderr).not.toContain('\x1b');
  });

  it('and does not name a function that was ended by force since', async () => {
    const { code, stderr } = await runOf('exit-with-cluster', 'thread', 'ended');
    expect(code).toBe(1);
    expect(stderr).toContain('no registered thread is left');
    expect(stderr).not.toContain('announceAndSpin');
  });

  it('that a completed join has not ended', async () => {
    const { code, said, stderr } = await run('is idle', 'joined');
    expect(said).toContainEqual({ event: 'joined' });
    expect(code).toBe(1);
    expect(stderr).toContain("'http' (task)");
  });

  it('when the worker that made the link has ended', async () => {
    expect((await run('computes', 'worker')).code).toBe(9);
  });

  it('at the next stop, if the first was cleared in time', async () => {
    const { code, said } = await run('is idle', 'cleared');
    expect(said).toContainEqual({ event: 'alive after the cleared stop' });
    expect(code).toBe(1);
  });

  it('while a formatter of stacks never returns', async () => {
    const { code, said, stderr } = await run('is idle', 'slow formatter');
    expect(said).toContainEqual({ event: 'formatting' });
    expect(code).toBe(1);
    expect(stderr).toContain("'http' (task)");
  });

  it('while nobody reads its standard error', async () => {
    const script = startScript('exit-after-stop', ['is idle', 'deaf reader', '{}'], {
      concurrent: true,
    });
    script.child.stderr?.pause();
    const code = await new Promise((resolve) => script.child.once('exit', resolve));
    expect(code).toBe(1);
    script.child.stderr?.resume();
    await script.ended;
  });
});

describe('exitAfterStop', () => {
  it('does nothing when the link has been disposed of', async () => {
    const { code, said } = await run('is idle', 'disposed');
    expect(said).toContainEqual({ event: 'alive after the disposal' });
    expect(code).toBe(5);
  });

  it('is listed by explain() until it is disposed of', () => {
    const coord = new Coordinator();
    const exit = coord.exitAfterStop(60_000);
    expect(coord.explain().links).toEqual([
      'the end of the process 60000 ms after a stop (exitAfterStop)',
    ]);
    exit[Symbol.dispose]();
    exit[Symbol.dispose]();
    expect(coord.explain().links).toEqual([]);
  });

  it('refuses durations and exit codes that make no sense, and changes nothing then', () => {
    const coord = new Coordinator();
    const code = (exitCode: unknown) => () => coord.exitAfterStop(1, { exitCode } as never);
    for (const ms of [-1, Number.NaN]) expect(() => coord.exitAfterStop(ms)).toThrow(RangeError);
    expect(() => coord.exitAfterStop('1' as never)).toThrow(TypeError);
    for (const value of [-1, 256, 1.5, Number.NaN]) expect(code(value)).toThrow(RangeError);
    for (const value of ['1', null]) expect(code(value)).toThrow(TypeError);
    expect(() => coord.exitAfterStop(1, 7 as never)).toThrow(TypeError);
    expect(coord.explain().links).toEqual([]);
  });

  it('waits for ever if the time is infinite', () => {
    const coord = new Coordinator();
    coord.exitAfterStop(Number.POSITIVE_INFINITY)[Symbol.dispose]();
  });
});
