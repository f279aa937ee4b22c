/**
 * Loads the binary and uses it, for doctor and for `allstop build`. In a child process,
 * since a binary for another C library can end the process that loads it; in this one
 * where children are forbidden.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { OVERRIDE } from '../../native/binary/binary.ts';
import { root } from '../../native/binary/package-files.ts';
import type { Probe } from './finding.ts';

/** More than the self-test's own deadline. */
const CHILD_MS = 30_000;

/** A child of the same kind; a debugger's port is taken, and it would wait there. */
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
  const timedOut = (error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT';
  const how = timedOut
    ? `did not answer within ${timeout / 1_000} s`
    : signal === null
      ? `was ended with exit code ${status}`
      : `was ended by ${signal}`;
  const lines = stderr.split('\n').filter((line) => /\w/.test(line) && !line.startsWith('(node:'));
  const said = lines.find((line) => /error|fatal|terminate/i.test(line)) ?? lines[0];
  return said === undefined ? how : `${how}, and said: ${said.trim()}`;
}

/** Undefined: there can be no child. */
function probeInChild(binary: string | undefined, timeout: number): Probe | undefined {
  let child: ReturnType<typeof runChild>;
  try {
    child = runChild(binary, timeout);
  } catch {
    return undefined; // the permission model, which refuses by an exception
  }
  if (child.pid === 0 || child.stdout === null) return undefined;
  const lines = child.stdout.split('\n').filter((line) => line.startsWith('{'));
  const told: Probe = Object.assign({}, ...lines.map((line) => JSON.parse(line)));
  const isComplete = [told.failed, told.tested, told.untested].some((end) => end !== undefined);
  return isComplete && child.status === 0 ? told : { ...told, crash: howItEnded(child, timeout) };
}

/**
 * `inChild`: false where a child would be permitted more than this process.
 * `binary`: to load in place of what the package would, in a child only.
 */
export async function probe(options: {
  inChild: boolean;
  binary?: string;
  timeoutMs?: number;
}): Promise<Probe> {
  const { inChild, binary, timeoutMs = CHILD_MS } = options;
  const found = inChild ? probeInChild(binary, timeoutMs) : undefined;
  if (found !== undefined) return found;
  const told: Probe = {};
  // Here, not above: doctor has to say what it can where the library cannot even be read.
  const { tryBinary } = await import('./try-binary.ts');
  await tryBinary((finding) => Object.assign(told, finding));
  return told;
}
