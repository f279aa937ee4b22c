/** Runs a case in a child process, and says how that ended. */

import { spawn, spawnSync } from 'node:child_process';
import { tellingLine, toldIn } from '../base/child-output.ts';
import { UsageError } from '../base/command.ts';

export type Outcome = {
  /** 'ok', 'hang', 'error: …', 'exit code N', or the name of a signal. */
  result: string;
  /** What the process was doing. Undefined if `result` is 'ok'. */
  when?: string;
  /** The line of the process's own output that tells most about a crash. */
  said?: string | undefined;
  /** The names that the addon exports, if `result` is an error and they are known. */
  exports?: readonly string[] | undefined;
};

/** Begins the result of a case whose exercise itself failed. */
export const ERROR = 'error: ';

/** How much of the end of stderr is kept. */
const KEPT_CHARACTERS = 64 * 1024;

/**
 * How long after its exit we wait for the last output of a process. The pipes may never close, if
 * another process, which the addon or the script has started, has inherited them.
 */
const CLOSE_TIMEOUT_MS = 500;

/** Exit codes of Windows such as 0xC0000005 are known in hexadecimal. */
const exitCode = (code: number | null): string =>
  `exit code ${code !== null && code > 0x7fffffff ? `0x${code.toString(16).toUpperCase()}` : code}`;

/** @param abort ends the child process at once; the outcome means nothing then */
export async function runCase(
  { program, args }: Runtime,
  script: string,
  order: Order,
  { timeoutMs, abort }: { timeoutMs: number; abort: AbortSignal },
): Promise<Outcome> {
  const child = spawn(program, [...args, script, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'pipe'], // the child ends when its stdin does
    signal: abort,
    killSignal: 'SIGKILL',
    windowsHide: true,
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-KEPT_CHARACTERS);
  });
  let isLate = false;
  let closing: NodeJS.Timeout | undefined;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  const { code, signal } = await new Promise<{ code: number | null; signal: string | null }>(
    (resolve) => {
      child.once('error', () => {}); // the abort, or what spawn says again by its exit code
      child.once('close', (ownCode, ownSignal) => resolve({ code: ownCode, signal: ownSignal }));
      child.once('exit', () => {
        clearTimeout(timer);
        closing = setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, CLOSE_TIMEOUT_MS);
      });
    },
  );
  clearTimeout(timer);
  clearTimeout(closing);
  const told: { step?: string; done?: true } & Partial<Failed> = toldIn(stdout);
  const { step = 'at the start of the process', failed, exports, done } = told;
  if (isLate) return { result: 'hang', when: step };
  if (failed !== undefined) return { result: `${ERROR}${failed}`, when: step, exports };
  if (signal === null && code === 0 && done) return { result: 'ok' };
  return { result: signal ?? exitCode(code), when: step, said: tellingLine(stderr) };
}

// A case of `allstop check-addon`: what the parent tells the child process, and what that says.

/** How far the addon has got in its worker when the worker is ended. */
const PHASES = ['loaded', 'running', 'done'] as const;

/** How the worker is ended. */
const ENDINGS = ['terminated', 'exits', 'throws'] as const;

/**
 * Two more: each function that the exercise gives to the addon throws when the addon has called it;
 * and another worker uses the addon anew when the first has ended, before the second ends.
 */
type Rarer = 'callback throws' | 'used again';

/** How many workers use the addon at the same time. */
const WORKERS = [1, 2] as const;

export type Case = {
  phase: (typeof PHASES)[number];
  ending: (typeof ENDINGS)[number] | Rarer;
  workers: (typeof WORKERS)[number];
};

export const cases: readonly Case[] = [
  ...PHASES.flatMap((phase) =>
    ENDINGS.flatMap((ending) => WORKERS.map((workers) => ({ phase, ending, workers }))),
  ),
  ...WORKERS.map((workers) => ({ phase: 'running', ending: 'callback throws', workers }) as const),
  { phase: 'done', ending: 'used again', workers: 2 },
];

/** What the child process is given. Paths are absolute. */
export type Order = Case & {
  addon: string;
  script: string;
  /** For so long after each worker's end the process lets events come. */
  afterMs: number;
};

/** Why the exercise could not be made; `exports` are the names that the addon exports, if known. */
export type Failed = { failed: string; exports?: readonly string[] | undefined };

/**
 * What the child process tells: what it does from now on, why the exercise could not
 * be made, and that all is done.
 */
export type Told = { step: string } | Failed | { done: true };

// The runtimes that `allstop check-addon` tries: those on this machine, or those named.

/** A runtime starts a script as `[program, ...args, script, ...]`. */
export type Runtime = { title: string; program: string; args: readonly string[] };

/** The names that are looked up on the PATH. */
const NAMES = ['node', 'bun', 'deno'];

/** The time that a runtime has to print its version. */
const VERSION_MS = 20_000;

/** @returns undefined if the program cannot be run or prints no version */
function runtimeOf(program: string): Runtime | undefined {
  const options = { encoding: 'utf8', timeout: VERSION_MS, windowsHide: true } as const;
  const { error, status, stdout } = spawnSync(program, ['--version'], options);
  if (error !== undefined || status !== 0) return undefined;
  const [, name, version] = /^(v|deno )?(\d+\.\d+\.[\w.-]+)/.exec(stdout) ?? [];
  if (version === undefined) return undefined;
  if (name === undefined) {
    // So npm and others print theirs, too.
    const { stdout: bun } = spawnSync(
      program,
      ['-e', 'console.log(`Bun ${Bun.version}`)'],
      options,
    );
    return bun?.startsWith('Bun ') ? { title: bun.trim(), program, args: [] } : undefined;
  }
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
