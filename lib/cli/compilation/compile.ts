/** Compiles the addon from the sources in the package, and moves it to where the loader looks. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { compiledIn } from '../../native/binary/binary.ts';
import { root } from '../../native/binary/package-files.ts';
import { CommandError } from '../base/command.ts';
import { probe } from '../doctor/probe.ts';
import { findPeers, type Peers } from './peers.ts';
import { run } from './run.ts';

/**
 * Makes the folder to compile in. It is inside the package, since the compiled binary is moved by a
 * rename, which is atomic only within one file system.
 */
function makeStaging(folder: string): string {
  try {
    return mkdtempSync(join(folder, 'build-cmake-tmp-'));
  } catch (error) {
    throw new CommandError(
      [
        `the folder of the package is not writable: ${(error as Error).message}`,
        `What to do: run this command as the owner of ${folder}, or install allstop in a folder that you own`,
      ].join('\n'),
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
  if (made === undefined)
    throw new CommandError(
      `cmake-js ended without an error, but made no allstop.node in ${staging}`,
    );
  return made;
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
