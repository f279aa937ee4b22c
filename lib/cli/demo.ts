/** `allstop demo` runs the program of examples/first. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../base/thrown-value.ts';
import { root } from '../native/binary/package-files.ts';
import { type Command, CommandError } from './base/command.ts';

/** From the root of the package. */
const PROGRAM = 'examples/first/main.mjs';
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];

export const demo: Command = {
  summary: 'runs a first program: a worker, a task and a looper that stop together',
  help: `Runs ${PROGRAM} of the package as node does. A worker computes, a task waits for an answer, a looper ticks. Press Ctrl-C: all of
them end, and the program says why, and how long each took. After ten seconds the worker fails,
which also stops the others.

The program ends with the exit code 1 because its worker fails, or 130 or 143 after SIGINT or
SIGTERM. It is meant to be read and copied: --json prints its path, and what it writes goes to
stderr.`,
  examples: ['npx allstop demo', 'cp node_modules/allstop/examples/first/main.mjs .'],
  options: [],
  run: async ({ json }) => {
    const program = join(root(), PROGRAM);
    const args = 'deno' in process.versions ? ['run', '-A', program] : [program];
    // In a process group of its own: Ctrl-C, or npm beside it, would signal it a second time, which
    // ends a program at once. The first signal is passed on, once.
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', json ? 2 : 'inherit', 'inherit'],
      detached: process.platform !== 'win32',
    });
    let isPassed = false;
    const pass = (signal: NodeJS.Signals): void => {
      if (!isPassed) child.kill(signal);
      isPassed = true;
    };
    for (const signal of SIGNALS) process.on(signal, pass);
    process.stderr.write('Press Ctrl-C, or wait ten seconds until the worker fails.\n');
    try {
      const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
      const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      return { text: '', json: { demo: program, exitCode }, exitCode };
    } catch (error) {
      throw new CommandError(`${process.execPath} cannot be run: ${messageOf(error)}`);
    } finally {
      for (const signal of SIGNALS) process.off(signal, pass);
    }
  },
};
