/** Runs a program that ends when we are asked to end, with all that it has started. */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CommandError } from '../command.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Resolves to its exit code. What it prints is progress, and goes to stderr.
 *
 * @throws (rejects) CommandError: a signal asked us to end; Error: it cannot be started
 */
export function run(program: string, args: string[]): Promise<number | null> {
  // A group of its own, so that a signal reaches make and the compilers, too. Windows
  // has no such thing: there Ctrl-C reaches all by itself.
  const isGroup = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: ['ignore', 2, 2], detached: isGroup });
  let asked: (typeof SIGNALS)[number] | undefined;
  const end = (signal: NodeJS.Signals): void => {
    asked = signal as (typeof SIGNALS)[number];
    if (child.pid === undefined) return;
    try {
      // Not the same signal: a compiler may take its time, and nothing is worth keeping.
      if (isGroup) process.kill(-child.pid, 'SIGKILL');
      else child.kill('SIGKILL');
    } catch {
      // It has just ended.
    }
  };
  for (const signal of SIGNALS) process.on(signal, end);
  return new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (asked === undefined) resolve(code);
      else reject(new CommandError(`ended by ${asked}`, 128 + constants.signals[asked]));
    });
  }).finally(() => {
    for (const signal of SIGNALS) process.off(signal, end);
  });
}
