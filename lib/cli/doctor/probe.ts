/**
 * A probe loads the native binary and runs the self-test, for `allstop doctor` and `allstop build`.
 * It runs in a child process, because a binary for another C library can crash the process that
 * loads it; where child processes are forbidden it runs in this process.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { attempt, codeOf } from '../../base/thrown-value.ts';
import { OVERRIDE } from '../../native/binary/binary.ts';
import { root } from '../../native/binary/package-files.ts';
import { tellingLine, toldIn } from '../base/child-output.ts';
import type { Probe } from './check.ts';

/** The time limit of the child process: longer than the deadlines of the self-test in it. */
const CHILD_MS = 30_000;

/**
 * Starts the child with the flags of this process, except --inspect: the port of the debugger is
 * taken, and with --inspect-brk the child would wait for a debugger.
 */
function runChild(binary: string | undefined, timeout: number) {
  const args = process.execArgv.filter((arg) => !arg.startsWith('--inspect'));
  const script = join(root(), 'dist/cli/probe-process.js');
  return spawnSync(process.execPath, [...args, script], {
    encoding: 'utf8',
    timeout,
    killSignal: 'SIGKILL',
    env: binary === undefined ? process.env : { ...process.env, [OVERRIDE]: binary },
    windowsHide: true,
  });
}

function howItEnded(
  { error, signal, status, stderr }: ReturnType<typeof runChild>,
  timeout: number,
): string {
  const ended = signal === null ? `ended with exit code ${status}` : `was ended by ${signal}`;
  const isLate = codeOf(error) === 'ETIMEDOUT';
  const how = isLate ? `did not answer within ${timeout / 1_000} s` : ended;
  const said = tellingLine(stderr);
  return said === undefined ? how : `${how} and printed: ${said}`;
}

/** @returns undefined if no child process can be started */
function probeInChild(binary: string | undefined, timeout: number): Probe | undefined {
  const child = attempt(() => runChild(binary, timeout)); // Node's permission model throws
  if (child === undefined || child.pid === 0 || child.stdout === null) return undefined;
  const told: Probe = toldIn(child.stdout);
  const isComplete = [told.failed, told.tested, told.untested].some((end) => end !== undefined);
  return isComplete && child.status === 0 ? told : { ...told, crash: howItEnded(child, timeout) };
}

/**
 * `inChild`: false if a child process would have more permissions than this process, so that its
 * findings would not hold here. `binary`: the file to load instead of the one that the loader
 * chooses; only used in a child. `timeoutMs`: for the child.
 */
export async function probe(options: {
  inChild: boolean;
  binary?: string;
  timeoutMs?: number | undefined;
}): Promise<Probe> {
  const { inChild, binary, timeoutMs = CHILD_MS } = options;
  const found = inChild && probeInChild(binary, timeoutMs);
  if (found) return found;
  const told: Probe = {};
  // Imported here: doctor must report what it can even if the library cannot load.
  const { tryBinary } = await import('./try-binary.ts');
  await tryBinary((finding) => Object.assign(told, finding));
  return told;
}
