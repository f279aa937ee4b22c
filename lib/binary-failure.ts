/** Why no native binary loads, in words: the likely cause, and the cure. */

import {
  candidates,
  libc,
  NODE_API,
  type Origin,
  OVERRIDE,
  platformName,
  prebuiltPlatforms,
} from './binary.ts';
import { UnavailableError } from './errors.ts';
import { root } from './package-files.ts';

/** A binary that is there, and what came of loading it. */
export type Attempt = { path: string; error: unknown };

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** Without the path, which is said before it. */
const whatItSaid = ({ path, error }: Attempt): string =>
  (messageOf(error).split('\n')[0] as string).replace(`${path}: `, '');

const BUILD = 'npm install --save-dev cmake-js node-addon-api && npx allstop build';

/** The likely cause why a file that is there does not load, and the cure. */
function diagnose({ path, error }: Attempt, origin: Origin): { cause: string; remedy: string } {
  const anotherFile = {
    override: `set ${OVERRIDE} to a binary for ${platformName()}, or unset it`,
    compiled: 'npx allstop build, again, or reinstall allstop',
    prebuilt: 'reinstall allstop',
  }[origin];
  const message = messageOf(error);
  const says = (pattern: RegExp): boolean => pattern.test(message);
  if (!path.endsWith('.node')) {
    return { cause: 'the name of a native addon ends in .node', remedy: anotherFile };
  }
  const napi = Number(process.versions['napi']);
  if (codeOf(error) === 'ERR_DLOPEN_DISABLED') {
    return {
      cause: "Node's permission model, or --no-addons, forbids native addons",
      remedy: 'run Node with --allow-addons (and --allow-worker for workers), without --no-addons',
    };
  }
  if (codeOf(error) === 'ERR_ACCESS_DENIED') {
    return {
      cause: "Node's permission model forbids reading the file",
      remedy: `run Node with --allow-fs-read=${root()} and --allow-addons`,
    };
  }
  if (says(/requires (?:ffi|read) access|--allow-ffi/i) || codeOf(error) === 'NotCapable') {
    return { cause: 'Deno forbids native addons', remedy: 'run deno with --allow-ffi' };
  }
  if (napi < NODE_API || says(/undefined symbol: (?:napi|node_api)_|did not self-register/)) {
    return {
      cause: `${process.version} is too old: Node-API ${NODE_API} is needed, it has ${napi}`,
      remedy: 'use Node 20.19 or later',
    };
  }
  const glibc = /version [`']?(GLIBC(?:XX)?_[\d.]+)'? not found/.exec(message);
  if (glibc) {
    return { cause: `the system's C library is older than ${glibc[1]}`, remedy: BUILD };
  }
  if (says(/^\S+: cannot open shared object file/) && message.startsWith(path)) {
    // What glibc says of a file that is there: it is for another processor.
    return { cause: `it is not for ${process.arch}`, remedy: anotherFile };
  }
  if (says(/ld-musl|libc\.musl|Error relocating|ld-linux|libc\.so\.6/)) {
    return {
      cause: `it is not for ${libc()}, the C library of this ${process.release.name}`,
      remedy: anotherFile,
    };
  }
  if (
    says(
      /ELF|file too short|wrong architecture|incompatible arch|not a valid Win32|mach-o|slice is not valid/,
    )
  ) {
    return {
      cause: `it is damaged, or for another platform than ${platformName()}`,
      remedy: anotherFile,
    };
  }
  if (
    codeOf(error) === 'EACCES' ||
    says(/permission denied|failed to map segment|not permitted/i)
  ) {
    return {
      cause:
        'the file may not be read or mapped (its permissions, or a file system mounted noexec)',
      remedy: `make it readable, or copy it to another file system and set ${OVERRIDE}`,
    };
  }
  return { cause: 'the system refused it', remedy: BUILD };
}

/** Why there is nothing to load. */
function diagnoseMissing(origin: Origin): { cause: string; remedy: string } {
  if (origin === 'override') {
    return { cause: `${OVERRIDE} names a file that is not there`, remedy: `correct or unset it` };
  }
  const there = prebuiltPlatforms();
  if (there.length === 0) {
    return {
      cause:
        'the prebuilds folder of the package is missing: a bundler, a copy or a cleaner left it out',
      remedy: `keep allstop external to the bundle, copy its prebuilds folder beside it, or set ${OVERRIDE}`,
    };
  }
  if (process.arch === 'x64' || process.arch === 'arm64') {
    return {
      cause: 'this copy of the package was packed, or pruned, without this platform',
      remedy: `reinstall allstop (delete node_modules, and the lockfile if it leaves platforms out), or: ${BUILD}`,
    };
  }
  return { cause: 'there is no prebuilt binary for this platform', remedy: BUILD };
}

export type Failure = { cause: string; remedy: string; lookedFor: string; there: string[] };

/** Why none of the candidates loads. `attempts`: those that are there, and what they said. */
export function explainFailure(attempts: Attempt[]): Failure {
  const all = candidates();
  const last = attempts.at(-1);
  const origin = all.find(({ path }) => path === last?.path)?.origin ?? all[0]?.origin;
  const { cause, remedy } =
    last === undefined
      ? diagnoseMissing(origin ?? 'prebuilt')
      : diagnose(last, origin ?? 'prebuilt');
  return { cause, remedy, lookedFor: platformName(), there: prebuiltPlatforms() };
}

/** The error of a program that needs the binary, and has none. */
export function unavailable(attempts: Attempt[]): UnavailableError {
  const { cause, remedy, lookedFor, there } = explainFailure(attempts);
  const tried = attempts.map((attempt) => `  ${attempt.path}: ${whatItSaid(attempt)}`);
  const absent = candidates().filter(({ exists, origin }) => !exists && origin !== 'compiled');
  if (tried.length === 0) tried.push(...absent.map(({ path }) => `  ${path}: not there`));
  const runtime = `${process.release.name} ${process.version}`;
  return new UnavailableError(
    [
      `allstop: no native binary for ${lookedFor} loads (${runtime})`,
      `Looked for:`,
      ...tried,
      `Prebuilt here: ${there.join(', ') || 'none'}`,
      `Likely cause: ${cause}`,
      `Cure: ${remedy}`,
      `More: npx allstop doctor`,
    ].join('\n'),
    { cause: attempts.at(-1)?.error },
  );
}
