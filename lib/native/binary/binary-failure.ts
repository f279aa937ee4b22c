/** Explains why no native binary loads: the likely cause, and the remedy. */

import { realpathSync } from 'node:fs';
import { codeOf, messageOf } from '../../base/thrown-value.ts';
import { UnavailableError } from '../../errors/errors.ts';
import {
  candidates,
  libc,
  NODE_API,
  type Origin,
  OVERRIDE,
  platformName,
  prebuiltPlatforms,
  UnfitError,
} from './binary.ts';
import { root } from './package-files.ts';

/** A binary that exists, and the error of loading it. */
export type Attempt = { path: string; error: unknown };

/** The error in one line, without its require stack and without the path: `unavailable` adds it. */
const errorLine = ({ path, error }: Attempt): string =>
  messageOf(error)
    .replace(/\nRequire stack:[^]*/, '')
    .replace(`${path}: `, '')
    .replaceAll('\n', ' ');

/**
 * The message without the path of the file, and of the file that it links to: the name of a
 * folder could match one of the patterns below.
 */
function withoutPath({ path, error }: Attempt): string {
  let target = path;
  try {
    target = realpathSync(path);
  } catch {
    // The file cannot be read: the error of loading it, `error`, says why.
  }
  return messageOf(error).replaceAll(target, '').replaceAll(path, '');
}

const BUILD = 'npm install --save-dev cmake-js node-addon-api && npx allstop build';

type Diagnosis = { cause: string; remedy: string };

const NO_FILE = /cannot open shared object file: No such file/;
const OTHER_LIBC = /ld-musl|libc\.musl|Error relocating|ld-linux|libc\.so\.6/;
const OTHER_FORMAT =
  /ELF|file too short|Exec format error|wrong architecture|incompatible arch|not a valid Win32|mach-o|slice is not valid/;
const NOT_PERMITTED = /permission denied|failed to map segment|not permitted/i;

/** The cause, if the message of the dynamic linker or of Node shows a wrong or damaged file. */
function causeInFile(message: string): string | undefined {
  const says = (pattern: RegExp): boolean => pattern.test(message);
  if (says(/did not self-register/)) return 'it is a library, not a native addon for Node';
  if (says(/NODE_MODULE_VERSION/)) return 'it is not the addon of allstop';
  const api = /(?:napi|node_api)_\w+/.exec(message);
  if (api) return `it needs ${api[0]}, which ${process.release.name} ${process.version} lacks`;
  // glibc says "No such file" of a file that exists, if it is for another processor.
  if (message.startsWith(': ') && says(NO_FILE)) return `it is not for ${process.arch}`;
  if (says(OTHER_LIBC)) {
    return `it is not for ${libc()}, the C library of this ${process.release.name}`;
  }
  const needed = /undefined symbol: (\S+)/.exec(message) ?? /^([^:\s]+): cannot open/.exec(message);
  if (needed) return `it needs ${needed[1]}, which is not here`;
  if (says(OTHER_FORMAT)) return `it is damaged, or for another platform than ${platformName()}`;
  return undefined;
}

/** Why a file that exists does not load. */
function diagnose(attempt: Attempt, origin: Origin): Diagnosis {
  const { path, error } = attempt;
  const anotherFile = {
    override: `set ${OVERRIDE} to a binary for ${platformName()}, or unset it`,
    compiled: 'npx allstop build, again, or reinstall allstop',
    prebuilt: 'reinstall allstop',
  }[origin];
  if (error instanceof UnfitError) return { cause: error.message, remedy: anotherFile };
  const message = withoutPath(attempt);
  const says = (pattern: RegExp): boolean => pattern.test(message);
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
      remedy: `run Node with --allow-fs-read=${origin === 'override' ? path : root()} and --allow-addons`,
    };
  }
  if (says(/requires (?:ffi|read) access|--allow-ffi/i) || codeOf(error) === 'NotCapable') {
    return { cause: 'Deno forbids native addons', remedy: 'run deno with --allow-ffi' };
  }
  if (napi < NODE_API) {
    return {
      cause: `${process.version} is too old: Node-API ${NODE_API} is needed, it has ${napi}`,
      remedy: 'use Node 20.19, or 22.3 or later',
    };
  }
  const glibc = /version [`']?(GLIBC(?:XX)?_[\d.]+)'? not found/.exec(message);
  if (glibc) {
    return { cause: `the system's C library is older than ${glibc[1]}`, remedy: BUILD };
  }
  if (codeOf(error) === 'EACCES' || says(NOT_PERMITTED)) {
    return {
      cause:
        'the file may not be read or mapped (its permissions, or a file system mounted noexec)',
      remedy: `make it readable, or copy it to another file system and set ${OVERRIDE}`,
    };
  }
  if (error instanceof SyntaxError) {
    const cause = 'it is a link to a file whose name does not end in .node';
    return { cause, remedy: anotherFile };
  }
  const cause = causeInFile(message);
  if (cause !== undefined) return { cause, remedy: anotherFile };
  return { cause: 'the system refused it', remedy: BUILD };
}

/** Why there is no file to load. */
function diagnoseMissing(origin: Origin): Diagnosis {
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
  const isPublished =
    ['linux', 'win32', 'darwin'].includes(process.platform) &&
    ['x64', 'arm64'].includes(process.arch);
  if (isPublished) {
    return {
      cause: 'this copy of the package was packed, or pruned, without this platform',
      remedy: `reinstall allstop (delete node_modules, and the lockfile if it leaves platforms out), or: ${BUILD}`,
    };
  }
  return { cause: 'there is no prebuilt binary for this platform', remedy: BUILD };
}

export type Failure = Diagnosis & {
  lookedFor: string;
  there: string[];
  /** The failed load that `cause` explains; undefined if there is no file. */
  attempt: Attempt | undefined;
};

/** Why none of the candidates loads. `attempts`: those that exist, and their errors. */
export function explainFailure(attempts: Attempt[]): Failure {
  const all = candidates();
  // The error of a file that does not load explains more than that of an unreadable folder.
  const last =
    attempts.findLast(({ error }) => codeOf(error) !== 'ERR_ACCESS_DENIED') ?? attempts.at(-1);
  const origin = all.find(({ path }) => path === last?.path)?.origin ?? all[0]?.origin;
  const { cause, remedy } =
    last === undefined
      ? diagnoseMissing(origin ?? 'prebuilt')
      : diagnose(last, origin ?? 'prebuilt');
  return {
    cause,
    remedy,
    lookedFor: platformName(),
    there: prebuiltPlatforms(),
    attempt: last,
  };
}

/** The error for a program that needs the binary. */
export function unavailable(attempts: Attempt[]): UnavailableError {
  const { cause, remedy, lookedFor, there, attempt } = explainFailure(attempts);
  const tried = attempts.map((each) => `  ${each.path}: ${errorLine(each)}`);
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
      `What to do: ${remedy}`,
      `More: npx allstop doctor`,
    ].join('\n'),
    attempt && { cause: attempt.error },
  );
}
