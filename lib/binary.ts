/**
 * Where this platform's native binary is. It loads nothing itself: native.ts does, and
 * `allstop doctor` tells of it.
 */

import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { roots } from './package-files.ts';

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

/**
 * The dynamic loader that the running program names in its ELF header: the C library
 * that is in the process, whatever else is installed.
 */
function interpreter(): string | undefined {
  const file = openSync(process.execPath, 'r');
  try {
    const read = (position: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, position));
    };
    const header = read(0, 64);
    if (header.toString('latin1', 0, 5) !== '\x7fELF\x02') return undefined; // 64 bits
    const size = header.readUInt16LE(54);
    const programs = read(Number(header.readBigUInt64LE(32)), size * header.readUInt16LE(56));
    for (let at = 0; at + size <= programs.length; at += size) {
      if (programs.readUInt32LE(at) !== 3) continue; // PT_INTERP
      const length = Number(programs.readBigUInt64LE(at + 32));
      return read(Number(programs.readBigUInt64LE(at + 8)), length).toString('latin1');
    }
    return undefined;
  } finally {
    closeSync(file);
  }
}

let libcFound: Libc | undefined;

/** Undefined where there is no choice, as on Windows and macOS. */
export function libc(): Libc | undefined {
  if (process.platform !== 'linux') return undefined;
  if (libcFound !== undefined) return libcFound;
  let loader: string | undefined;
  try {
    loader = interpreter();
  } catch {
    // Unreadable, for example under the permission model.
  }
  if (loader !== undefined) libcFound = loader.includes('musl') ? 'musl' : 'glibc';
  else {
    const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } };
    libcFound = report?.header?.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
  }
  return libcFound;
}

/** As in the table of the README: `linux-x64-glibc`, `win32-x64`. */
export function platformName(): string {
  const family = libc();
  return `${process.platform}-${process.arch}${family === undefined ? '' : `-${family}`}`;
}

/** Where cmake-js puts the binary in the folder that it builds in. */
export const compiledIn = (folder: string): string => join(folder, 'Release', 'allstop.node');

/** What there could be to load, best first; with an override only that. */
export function candidates(): Candidate[] {
  const override = process.env[OVERRIDE];
  if (override) {
    const path = resolve(override);
    return [{ path, origin: 'override', exists: existsSync(path) }];
  }
  const family = libc();
  const folder = `${process.platform}-${process.arch}`;
  const file = family === undefined ? 'allstop.node' : `allstop.${family}.node`;
  const found: Candidate[] = [];
  for (const each of roots()) {
    const compiled = compiledIn(join(each, 'build-cmake'));
    const prebuilt = join(each, 'prebuilds', folder, file);
    found.push({ path: compiled, origin: 'compiled', exists: existsSync(compiled) });
    found.push({ path: prebuilt, origin: 'prebuilt', exists: existsSync(prebuilt) });
  }
  return found;
}

/** What prebuilds/ holds, as in the names of platforms. */
export function prebuiltPlatforms(): string[] {
  const names = new Set<string>();
  for (const each of roots()) {
    try {
      const folder = join(each, 'prebuilds');
      for (const platform of readdirSync(folder)) {
        for (const file of readdirSync(join(folder, platform))) {
          const tag = /^allstop(?:\.(\w+))?\.node$/.exec(file)?.[1];
          names.add(tag === undefined ? platform : `${platform}-${tag}`);
        }
      }
    } catch {
      // It has none.
    }
  }
  return [...names].toSorted();
}
