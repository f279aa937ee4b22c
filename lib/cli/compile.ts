/** Compiles the addon from the sources in the package, and moves it to where the loader looks. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, messageOf } from '../base/thrown-value.ts';
import { compiledIn } from '../native/binary/binary.ts';
import { root } from '../native/binary/package-files.ts';
import { CommandError, untilSignal } from './base/command.ts';
import { probe } from './doctor/probe.ts';

const STAGING = 'build-cmake-tmp-';

/** No build takes so long: an older folder is of a process that was killed. */
const LONGEST_BUILD_MS = 86_400_000;

function sweep(staging: string): void {
  const changed = statSync(staging, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
  if (Date.now() - changed > LONGEST_BUILD_MS) rmSync(staging, { recursive: true, force: true });
}

/**
 * Makes the folder to compile in. It is inside the package, since the compiled binary is moved by a
 * rename, which is atomic only within one file system.
 */
function makeStaging(folder: string): string {
  try {
    for (const name of readdirSync(folder)) {
      if (name.startsWith(STAGING)) sweep(join(folder, name));
    }
    return mkdtempSync(join(folder, STAGING));
  } catch (error) {
    throw new CommandError(
      `the folder of the package is not writable: ${messageOf(error)}\nWhat to do: run this command as the owner of ${folder}, or install allstop in a folder that you own`,
    );
  }
}

const finds = (program: string): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;

function compilationFailed(code: number | null): CommandError {
  const remedy = finds('cmake')
    ? 'read the output above; CMake 3.18 or later, a C++17 compiler, and make or ninja are needed'
    : 'install CMake 3.18 or later (there is no cmake on the PATH) and a C++17 compiler';
  return new CommandError(
    `the binary could not be compiled (exit code ${code})\nWhat to do: ${remedy}`,
  );
}

/** Compiles into `staging`. Resolves to the path of the binary. */
async function compileIn(staging: string, folder: string, peers: Peers): Promise<string> {
  const code = await run(process.execPath, [
    peers.cmakeJs,
    'build', // not 'compile', which repeats a build that failed
    `--directory=${folder}`,
    `--out=${staging}`,
    `--parallel=${availableParallelism()}`,
    '--CDALLSTOP_ADDON=ON',
    `--CDNODE_ADDON_API_DIR=${peers.nodeAddonApi}`,
  ]);
  if (code !== 0) throw compilationFailed(code);
  // On Windows, CMake generators with a single configuration make no folder Release/.
  const made = [compiledIn(staging), join(staging, 'allstop.node')].find(existsSync);
  if (made !== undefined) return made;
  throw new CommandError(`cmake-js ended without an error, but made no allstop.node in ${staging}`);
}

/** @throws CommandError: the binary does not load here, or does not work */
async function check(binary: string): Promise<void> {
  const { tested, failed, untested, crash } = await probe({ inChild: true, binary });
  if (tested !== undefined && crash === undefined) return;
  const why = failed?.cause ?? untested ?? `the process that used it ${crash}`;
  throw new CommandError(`the binary was compiled, but does not work and is not used: ${why}`);
}

/**
 * Compiles and tests the binary, then moves it to where the loader looks, and resolves to that
 * path. Until the move the loader finds the previous binary, if there is one.
 */
export async function compile(): Promise<string> {
  const folder = root();
  const peers = findPeers();
  const staging = makeStaging(folder);
  try {
    process.stderr.write(`allstop: compiling ${folder}\n`);
    const made = await compileIn(staging, folder, peers);
    await check(made);
    const path = compiledIn(join(folder, 'build-cmake'));
    mkdirSync(dirname(path), { recursive: true });
    renameSync(made, path);
    return path;
  } finally {
    // Retries, because a compiler that is just being killed may still write a file.
    rmSync(staging, { recursive: true, force: true, maxRetries: 10 });
  }
}

// Runs a program, and ends it and its child processes when a signal ends this process.

const GRACE_PERIOD_MS = 2_000;
const POLL_MS = 20;

/**
 * Sends the signal to the process group of `leader`; 0 sends nothing.
 *
 * @returns whether the group still has a process
 */
const signalGroup = (leader: number, signal: NodeJS.Signals | 0): boolean =>
  attempt(() => process.kill(-leader, signal)) ?? false;

/**
 * Waits until all processes of the group have ended; kills the group if some still run after the
 * grace period. The wait polls, because only the leader is our child and reports its end.
 */
async function endOfGroup(leader: number): Promise<void> {
  const deadline = performance.now() + GRACE_PERIOD_MS;
  while (signalGroup(leader, 0)) {
    if (performance.now() > deadline) return void signalGroup(leader, 'SIGKILL');
    await sleep(POLL_MS);
  }
}

/**
 * Runs the program and resolves to its exit code. Its output is progress and goes to stderr.
 *
 * @throws (rejects) CommandError: a signal has ended this process; Error: the program cannot be
 *   started
 */
async function run(program: string, args: string[]): Promise<number | null> {
  // The program gets a process group of its own, so that a signal also reaches the make or ninja
  // that it starts, which then ends the compilers. Windows has no process groups; there Ctrl-C
  // reaches all processes anyway.
  const isGroup = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: ['ignore', 2, 2], detached: isGroup });
  const leader = isGroup ? child.pid : undefined;
  let isEnded = false;
  const end = (signal: NodeJS.Signals): void => {
    isEnded = true;
    if (leader === undefined) child.kill(signal);
    else signalGroup(leader, signal);
  };
  return untilSignal(end, async () => {
    const [code] = await once(child, 'close');
    if (isEnded && leader !== undefined) await endOfGroup(leader);
    return code;
  });
}

// Finds the packages that only `allstop build` needs: optional peers, which the user installs.

type Peers = { cmakeJs: string; nodeAddonApi: string };
const PEERS = ['cmake-js', 'node-addon-api'];

/**
 * A peer is looked for from the user's project, then from this package, beside which a package
 * manager may have installed the peer where the project cannot find it.
 */
function manifestOf(name: string): string | undefined {
  const paths = [process.cwd(), import.meta.dirname];
  return attempt(() => createRequire(import.meta.url).resolve(`${name}/package.json`, { paths }));
}

/**
 * The script of cmake-js, and the folder of node-addon-api's headers.
 *
 * @throws CommandError: packages are missing; the message has their names and the remedy
 */
function findPeers(): Peers {
  const [cmakeJs, nodeAddonApi] = PEERS.map(manifestOf);
  if (cmakeJs !== undefined && nodeAddonApi !== undefined) {
    const { bin }: { bin: { 'cmake-js': string } } = JSON.parse(readFileSync(cmakeJs, 'utf8'));
    const program = join(dirname(cmakeJs), bin['cmake-js']);
    return { cmakeJs: program, nodeAddonApi: dirname(nodeAddonApi) };
  }
  const missing = PEERS.filter((name) => manifestOf(name) === undefined);
  const are = `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'}`;
  throw new CommandError(
    `${are} needed to compile, but not installed in ${process.cwd()}\nWhat to do: npm install --save-dev ${missing.join(' ')}`,
  );
}
