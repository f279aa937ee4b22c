/** The runtimes that `allstop check-addon` tries: those on this machine, or those named. */

import { spawnSync } from 'node:child_process';
import { UsageError } from '../base/command.ts';

/** A runtime starts a script as `[program, ...args, script, ...]`. */
export type Runtime = { title: string; program: string; args: readonly string[] };

/** The names that are looked up on the PATH. */
const NAMES = ['node', 'bun', 'deno'];

/** The time that a runtime has to print its version. */
const VERSION_MS = 20_000;

/** @returns undefined if the program cannot be run or prints no version */
function runtimeOf(program: string): Runtime | undefined {
  const { error, status, stdout } = spawnSync(program, ['--version'], {
    encoding: 'utf8',
    timeout: VERSION_MS,
    windowsHide: true,
  });
  if (error !== undefined || status !== 0) return undefined;
  const [, name, version] = /^(v|deno )?(\d+\.\d+\.[\w.-]+)/.exec(stdout) ?? [];
  if (version === undefined) return undefined;
  if (name === undefined) return { title: `Bun ${version}`, program, args: [] };
  return name === 'v'
    ? { title: `Node.js ${version}`, program, args: [] }
    : { title: `Deno ${version}`, program, args: ['run', '--allow-all'] };
}

/**
 * @param list of `--runtimes`: names or paths, separated by commas. Undefined: the runtime of this
 *   process, and node, bun and deno of the PATH. Of one version of a runtime, the first counts
 * @throws UsageError a runtime of the list cannot be run
 */
export function runtimesAtHand(list: string | undefined): Runtime[] {
  const programs = list?.split(',') ?? [process.execPath, ...NAMES];
  const found = new Map<string, Runtime>();
  for (const program of programs) {
    const runtime = program === '' ? undefined : runtimeOf(program);
    if (runtime === undefined) {
      if (list === undefined) continue;
      throw new UsageError(`--runtimes: '${program}' is no Node.js, Bun or Deno that can be run`);
    }
    if (!found.has(runtime.title)) found.set(runtime.title, runtime);
  }
  return [...found.values()];
}
