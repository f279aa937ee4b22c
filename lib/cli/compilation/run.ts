/** Runs a program, and ends it and its child processes when this process gets SIGINT or SIGTERM. */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from '../base/command.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const GRACE_PERIOD_MS = 2_000;
const POLL_MS = 20;

/**
 * Sends the signal to the process group of `leader`; 0 sends nothing.
 *
 * @returns whether the group still has a process
 */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

/**
 * Waits until all processes of the group have ended; kills the group if some still run after the
 * grace period. The wait polls, because only the leader is our child and reports its end.
 */
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
 * Runs the program and resolves to its exit code. Its output is progress and goes to stderr.
 *
 * @throws (rejects) CommandError: this process got SIGINT or SIGTERM; Error: the program cannot be
 *   started
 */
export async function run(program: string, args: string[]): Promise<number | null> {
  // The program gets a process group of its own, so that a signal also reaches the make or ninja
  // that it starts, which then ends the compilers. Windows has no process groups; there Ctrl-C
  // reaches all processes anyway.
  const isGroup = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: ['ignore', 2, 2], detached: isGroup });
  let endedBy: NodeJS.Signals | undefined;
  const end = (signal: NodeJS.Signals): void => {
    endedBy = signal;
    if (isGroup && child.pid !== undefined) signalGroup(child.pid, signal);
    else child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, end);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (endedBy === undefined) return code;
    if (isGroup && child.pid !== undefined) await endOfGroup(child.pid);
    throw new CommandError(`ended by ${endedBy}`, 128 + constants.signals[endedBy]);
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}
