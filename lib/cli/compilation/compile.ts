/** Compiles the addon from the sources in the package, and puts it where it is looked for. */

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

/** In the package, since a file can be moved into place at once only within a file system. */
function makeStaging(folder: string): string {
  try {
    return mkdtempSync(join(folder, 'build-cmake-tmp-'));
  } catch (error) {
    throw new CommandError(
      [
        `the folder of the package cannot be written to: ${(error as Error).message}`,
        `Cure: run it as the owner of ${folder}, or install allstop where you may write`,
      ].join('\n'),
    );
  }
}

const finds = (program: string): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;

function compilationFailed(code: number | null): CommandError {
  const missing = finds('cmake')
    ? 'CMake 3.18 or later, a C++17 compiler, and make or ninja are needed; what went wrong is above'
    : 'there is no cmake on the PATH: install CMake 3.18 or later, and a C++17 compiler';
  return new CommandError(`the binary could not be compiled (exit code ${code}): ${missing}`);
}

/** The path of the binary in `staging`. */
async function compileIn(staging: string, folder: string, peers: Peers): Promise<string> {
  const code = await run(process.execPath, [
    peers.cmakeJs,
    'build', // not 'compile', which does all that fails twice
    `--directory=${folder}`,
    `--out=${staging}`,
    `--parallel=${availableParallelism()}`,
    '--CDALLSTOP_ADDON=ON',
    `--CDNODE_ADDON_API_DIR=${peers.nodeAddonApi}`,
  ]);
  if (code !== 0) throw compilationFailed(code);
  // Generators of one configuration have no folder for it on Windows.
  const made = [compiledIn(staging), join(staging, 'allstop.node')].find(existsSync);
  if (made === undefined) throw new CommandError('cmake-js made no allstop.node');
  return made;
}

/** @throws CommandError: it does not load here, or does not work */
async function check(binary: string): Promise<void> {
  const { tested, failed, untested, crash } = await probe({ inChild: true, binary });
  if (tested !== undefined && crash === undefined) return;
  const why = failed?.cause ?? untested ?? `the process that used it ${crash}`;
  throw new CommandError(`the binary was compiled, but does not work, and is not used: ${why}`);
}

/**
 * Resolves to the path of the binary, which has been tried. Until then nothing is where
 * the loader looks, or what was there before.
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
    // Retried, for what a compiler that was ended may still be writing.
    rmSync(staging, { recursive: true, force: true, maxRetries: 10 });
  }
}
