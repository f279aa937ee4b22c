// The errors that coordinators record have a line each on standard error, with NODE_DEBUG=allstop.

import { expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

const ROOT = "coordinator '";

/** The beginnings of the lines, without the process id. */
function linesOf(stderr: string): string[] {
  return stderr
    .split('\n')
    .filter((line) => line.startsWith('ALLSTOP '))
    .map((line) => line.slice(line.indexOf(ROOT) + ROOT.length));
}

it('NODE_DEBUG=allstop: a line for each error, with who reported it', async () => {
  const ended = await runScript('logged-errors', [], { env: { NODE_DEBUG: 'allstop' } });
  expect(ended).toMatchObject({ code: 0, signal: null });
  const errors = linesOf(ended.stderr).filter((line) => line.includes(' an error of '));
  expect(errors).toEqual([
    "pipeline': recorded an error of the thread 'pump' (0), via 'exception': RangeError: the tank is empty",
    "pipeline': suppressed an error of the thread 'main' (0), via 'call': TypeError: later",
    "pipeline': suppressed an error of the thread 'main' (0), via 'call': RangeError: later still",
    "odd': recorded an error of the thread 'main' (0), via 'call': a value that cannot be shown",
    expect.stringMatching(
      /^native': recorded an error of the thread 'engine' \(\d+\), via 'exception': NativeError .*: disk full/,
    ),
    "remote': recorded an error of the thread 'worker-1' (1), via 'call': SyntaxError: in a worker",
    "hooked': recorded an error of the thread 'first' (0), via 'hook': RangeError: not closed",
    "hooked': suppressed an error of the thread 'flush' (0), via 'hook': TypeError: not flushed",
    "forger'\\x0aALLSTOP 1: coordinator 'bank': recorded an error of the thread 'main' (0), via 'call': A",
    "plain': recorded an error of the thread 'main' (0), via 'call': OutOfRangeError: a clean stop",
  ]);
  expect(ended.stderr).toMatch(/ the tank is empty\n +at .*logged-errors\.mjs/); // its stack
});

it('a name or a message of the program begins no line, nor does it steer the terminal', async () => {
  const ended = await runScript('logged-errors', [], { env: { NODE_DEBUG: 'allstop' } });
  expect(ended.stderr).toContain(
    "coordinator 'forger'\\x0aALLSTOP 1: coordinator 'bank': recorded",
  );
  expect(ended.stderr).toMatch(/\n +ALLSTOP 1: vain\\x0d/);
  expect(ended.stderr).not.toMatch(/^ALLSTOP 1:/m);
  expect(saidOf(ended, 'forged')).toMatchObject({ error: 'A\\x0aB: in' });
});

it('NODE_DEBUG=allstop: a line for each thread that starts and ends, and for each stop', async () => {
  const ended = await runScript('logged-errors', [], { env: { NODE_DEBUG: 'allstop' } });
  const others = linesOf(ended.stderr).filter((line) => !line.includes(' an error of '));
  expect(others.filter((line) => line.startsWith('pipeline'))).toEqual([
    "pipeline': the thread 'pump' (task) has started",
    "pipeline': stopped (error) by the thread 'pump' (0), via 'exception'",
    "pipeline': the thread 'pump' (task) has ended",
  ]);
  expect(others.filter((line) => line.startsWith('plain'))).toEqual([
    "plain': stopped (plain) by the thread 'main' (0), via 'call'",
    "plain': the stop was cleared",
    "plain': stopped (clean) by the thread 'main' (0), via 'call'",
  ]);
});

it('NODE_DEBUG=allstop: a line for each queue that is full, and that is closed', async () => {
  const ended = await runScript('logged-queues', [], { env: { NODE_DEBUG: 'allstop' } });
  expect(ended).toMatchObject({ code: 0, signal: null });
  expect(ended.stderr.replaceAll(/^ALLSTOP \d+: /gm, '')).toBe(
    "queue 'grain': full, a producer waits\nqueue 'grain': closed, with 1 of 1 items\n",
  );
});

it('without it: nothing', async () => {
  const ended = await runScript('logged-errors', [], { env: { NODE_DEBUG: '' } });
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(saidOf(ended, 'stopped')).toMatchObject({ message: 'the tank is empty' });
});
