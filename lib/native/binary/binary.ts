/**
 * Finds this platform's native binary. native.ts loads it; `allstop doctor` prints what was
 * found.
 */

import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { workerThreads } from '../../base/builtins.ts';
import { attempt, textOf } from '../../base/thrown-value.ts';
import { look, roots } from './package-files.ts';

// Looks into a binary before it is loaded: loading some files would end the process, or block
// it for good.

/** The file is not an addon of allstop that can be loaded. The message is the cause, for people. */
export class UnfitError extends Error {}

/** @throws UnfitError; the error of the file system */
export function checkFile(path: string): void {
  if (!path.endsWith('.node')) throw new UnfitError('the name of a native addon ends in .node');
  const stats = statSync(path);
  if (stats.isDirectory()) throw new UnfitError('it is a directory');
  // Opening a FIFO would block for good.
  if (!stats.isFile()) throw new UnfitError('it is not a regular file');
  // Linux also maps the missing end of a truncated file; reading there is a SIGBUS.
  if (process.platform === 'linux' && readElf(path)?.isWhole === false) {
    throw new UnfitError('it is damaged: its end is missing');
  }
}

const PT_LOAD = 1;
const PT_INTERP = 3;
const PROGRAM_HEADER = 56; // bytes

type Elf = {
  /** The path of the dynamic loader that a program names; a library names none. */
  interpreter: string | undefined;
  /** Whether the file has every byte that the system will map into memory. */
  isWhole: boolean;
};

const isElf64LittleEndian = (header: Buffer): boolean =>
  header.length === 64 &&
  header.toString('latin1', 0, 6) === '\x7fELF\x02\x01' &&
  header.readUInt16LE(54) === PROGRAM_HEADER;

/**
 * Reads the program headers of an ELF file.
 *
 * @returns undefined if the file is not a 64-bit, little-endian ELF file
 * @throws the error of the file system
 */
function readElf(path: string): Elf | undefined {
  const file = openSync(path, 'r');
  try {
    const read = (position: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, position));
    };
    const header = read(0, 64);
    if (!isElf64LittleEndian(header)) return undefined;
    const { size: fileSize } = fstatSync(file);
    const at = Number(header.readBigUInt64LE(32));
    const length = PROGRAM_HEADER * header.readUInt16LE(56);
    if (at + length > fileSize) return { interpreter: undefined, isWhole: false };
    const programs = read(at, length);
    const found: Elf = { interpreter: undefined, isWhole: true };
    for (let each = 0; each < length; each += PROGRAM_HEADER) {
      const type = programs.readUInt32LE(each);
      const from = Number(programs.readBigUInt64LE(each + 8));
      const size = Number(programs.readBigUInt64LE(each + 32));
      const isThere = from + size <= fileSize;
      if (type === PT_LOAD && !isThere) found.isWhole = false;
      if (type === PT_INTERP && isThere) found.interpreter = read(from, size).toString('latin1');
    }
    return found;
  } finally {
    closeSync(file);
  }
}

/** The C library of the running program; a binary for the other one does not load. */
export type Libc = 'glibc' | 'musl';

/** The environment variable that overrides the path of the binary. */
export const OVERRIDE = 'ALLSTOP_BINARY';

/** The oldest Node-API version that can load the binary. */
export const NODE_API = 8;

/**
 * How a binary came to be where it is: named by the override, compiled on this machine
 * (`allstop build`, or a development build), or published with the package.
 */
export type Origin = 'override' | 'compiled' | 'prebuilt';
export type Candidate = { path: string; origin: Origin; exists: boolean };

type Report = {
  excludeNetwork?: boolean | undefined;
  getReport(): { header?: { glibcVersionRuntime?: string } };
};

/** Fallback of `libc()`: asks process.report, which takes milliseconds. */
function reportedLibc(): Libc {
  const report = process.report as unknown as Report | undefined;
  if (report === undefined) return 'glibc';
  const before = report.excludeNetwork;
  report.excludeNetwork = true; // else the report asks a name server for the names of peers
  try {
    const { header } = report.getReport();
    return header !== undefined && header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
  } finally {
    report.excludeNetwork = before;
  }
}

let libcFound: Libc | undefined;

/** The C library of this process. @returns undefined except on Linux */
export function libc(): Libc | undefined {
  if (process.platform !== 'linux') return undefined;
  if (libcFound !== undefined) return libcFound;
  // The loader that this program names tells which C library is in the process. The program's file may
  // be unreadable, for example under the permission model.
  const loader = attempt(() => readElf(process.execPath)?.interpreter);
  // Only the file name counts: a folder may be called anything, `musl` too.
  if (loader !== undefined) libcFound = basename(loader).includes('musl') ? 'musl' : 'glibc';
  else libcFound = reportedLibc();
  return libcFound;
}

/** The name of this platform, as in the README's table: `linux-x64-glibc`, `win32-x64`. */
export function platformName(): string {
  const family = libc();
  return `${process.platform}-${process.arch}${family === undefined ? '' : `-${family}`}`;
}

/** The path of the binary that cmake-js builds in `folder`. */
export const compiledIn = (folder: string): string => join(folder, 'Release', 'allstop.node');

/**
 * A file that the permission model hides counts as existing: the error of loading it says what is
 * forbidden.
 */
const candidate = (origin: Origin, path: string): Candidate => ({
  path,
  origin,
  exists: look(path) ?? true,
});

/**
 * Passes an override that has been loaded on to the workers of this process, in case their
 * environment or the working directory has changed by then. Two binaries in one process would
 * be two worlds, with no coordinator in common.
 */
export function handDown({ path, origin }: Candidate): void {
  if (origin === 'override') workerThreads().setEnvironmentData(OVERRIDE, path);
}

function handedDown(): string | undefined {
  if (workerThreads().isMainThread) return undefined;
  return textOf(workerThreads().getEnvironmentData(OVERRIDE));
}

/** The files that may be the binary, best first. With an override, only that file. */
export function candidates(): Candidate[] {
  const override = handedDown() ?? process.env[OVERRIDE];
  if (override) {
    const path = attempt(() => resolve(override)) ?? override; // the working directory may be gone
    return [candidate('override', path)];
  }
  const family = libc();
  const folder = `${process.platform}-${process.arch}`;
  const file = family === undefined ? 'allstop.node' : `allstop.${family}.node`;
  return roots().flatMap((each) => [
    candidate('compiled', compiledIn(join(each, 'build-cmake'))),
    candidate('prebuilt', join(each, 'prebuilds', folder, file)),
  ]);
}

/** None if there is no such folder. */
const namesIn = (folder: string): string[] => attempt(() => readdirSync(folder)) ?? [];

/** The platforms (`platformName`) that prebuilds/ has binaries for. */
export function prebuiltPlatforms(): string[] {
  const names = new Set<string>();
  for (const folder of roots().map((each) => join(each, 'prebuilds'))) {
    for (const platform of namesIn(folder)) {
      for (const file of namesIn(join(folder, platform))) {
        const tag = /^allstop(\.\w+)?\.node$/.exec(file);
        if (tag) names.add(`${platform}${tag[1]?.replace('.', '-') ?? ''}`);
      }
    }
  }
  return [...names].toSorted();
}
