/**
 * Where this platform's native binary is. It loads nothing itself: native.ts does, and
 * `allstop doctor` tells of it.
 */

import { readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import workerThreads from 'node:worker_threads';
import { readElf } from './binary-file.ts';
import { look, roots } from './package-files.ts';

/** The C library of the running program; a binary for the other one does not load. */
export type Libc = 'glibc' | 'musl';

/** The environment variable that overrides the path of the binary. */
export const OVERRIDE = 'ALLSTOP_BINARY';

/** The oldest Node-API that the binary can do with. */
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

/** Slower. */
function reportedLibc(): Libc {
  const report = process.report as unknown as Report | undefined;
  if (report === undefined) return 'glibc';
  const before = report.excludeNetwork;
  report.excludeNetwork = true; // names of peers, which a name server is asked for
  try {
    const { header } = report.getReport();
    return header !== undefined && header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
  } finally {
    report.excludeNetwork = before;
  }
}

let libcFound: Libc | undefined;

/** Undefined where there is no choice, as on Windows and macOS. */
export function libc(): Libc | undefined {
  if (process.platform !== 'linux') return undefined;
  if (libcFound !== undefined) return libcFound;
  let loader: string | undefined;
  try {
    // Which C library is in the process, whatever else is installed.
    loader = readElf(process.execPath)?.interpreter;
  } catch {
    // Unreadable, for example under the permission model.
  }
  // Of its path only the name: a folder may be called anything.
  if (loader !== undefined) libcFound = basename(loader).includes('musl') ? 'musl' : 'glibc';
  else libcFound = reportedLibc();
  return libcFound;
}

/** As in the table of the README: `linux-x64-glibc`, `win32-x64`. */
export function platformName(): string {
  const family = libc();
  return `${process.platform}-${process.arch}${family === undefined ? '' : `-${family}`}`;
}

/** Where cmake-js puts the binary in the folder that it builds in. */
export const compiledIn = (folder: string): string => join(folder, 'Release', 'allstop.node');

/** One that may not be looked at counts as there: loading it says why it fails. */
const candidate = (origin: Origin, path: string): Candidate => ({
  path,
  origin,
  exists: look(path) ?? true,
});

function resolved(path: string): string {
  try {
    return resolve(path);
  } catch {
    return path; // the working directory is gone
  }
}

/**
 * The override by which the binary was loaded holds for the workers, too, whatever their
 * environment or the working directory is by then: two binaries have no coordinator in
 * common.
 */
export function handDown({ path, origin }: Candidate): void {
  if (origin === 'override') workerThreads.setEnvironmentData(OVERRIDE, path);
}

function handedDown(): string | undefined {
  if (workerThreads.isMainThread) return undefined;
  return workerThreads.getEnvironmentData(OVERRIDE) as string | undefined;
}

/** What there could be to load, best first; with an override only that. */
export function candidates(): Candidate[] {
  const override = handedDown() ?? process.env[OVERRIDE];
  if (override) return [candidate('override', resolved(override))];
  const family = libc();
  const folder = `${process.platform}-${process.arch}`;
  const file = family === undefined ? 'allstop.node' : `allstop.${family}.node`;
  return roots().flatMap((each) => [
    candidate('compiled', compiledIn(join(each, 'build-cmake'))),
    candidate('prebuilt', join(each, 'prebuilds', folder, file)),
  ]);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // not there, or no folder
  }
}

/** What prebuilds/ holds, as in the names of platforms. */
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
