/** Runs a program that ends when we are asked to end, with all that it has started. */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from '../base/command.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const GRACE_PERIOD_MS = 2_000;
const POLL_MS = 20;

/** Whether anybody of the group was there to be signalled; 0 is no signal. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

/** Of what the leader leaves behind nobody tells when it ends. */
async function endOfGroup(leader: number): Promise<void> {
  const deadline = performance.now() + GRACE_PERIOD_MS;
  while (signalGroup(leader, 0)) {
    if (performance.now() > deadline) {
      signalGroup(leader, 'SIGKILL');
      return;
    }
    await sleep(POLL_MS);
  }
}

/**
 * Resolves to its exit code. What it prints is progress, and goes to stderr.
 *
 * @throws (rejects) CommandError: a signal asked us to end; Error: it cannot be started
 */
export async function run(program: string, args: string[]): Promise<number | null> {
  // A group of its own, so that a signal reaches make or ninja, too, which then end the
  // compilers. Windows has no such thing: there Ctrl-C reaches all by itself.
  const isGroup = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: ['ignore', 2, 2], detached: isGroup });
  let asked: NodeJS.Signals | undefined;
  const end = (signal: NodeJS.Signals): void => {
    asked = signal;
    if (isGroup && child.pid !== undefined) signalGroup(child.pid, signal);
    else child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, end);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (asked === undefined) return code;
    if (isGroup && child.pid !== undefined) await endOfGroup(child.pid);
    throw new CommandError(`ended by ${asked}`, 128 + constants.signals[asked]);
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}
