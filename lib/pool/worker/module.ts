/** The module of a pool: what a strategy says about it, its fingerprint, and why it cannot be loaded. */

import { readFileSync, realpathSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { checkString, didYouMean, invalidType } from '../../base/arguments.ts';
import { builtin } from '../../base/builtins.ts';
import { withCallersFrames } from '../../base/callers-frames.ts';
import { moduleFile } from '../../base/module-file.ts';
import { attempt, codeOf, fieldOf, isObject, namedMessageOf } from '../../base/thrown-value.ts';
import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../errors/errors.ts';
import { callOfCaller } from './call-store.ts';

/** The advice in errors about a function that is not found. */
export const PASS_A_NAME = 'pass the name of a function that the module exports';

/** @returns the URL of the module's file. @throws TypeError, which says how to write a path's URL */
export function checkModule(module: unknown, name = 'options.module'): URL {
  if (module instanceof URL) return moduleFile(module);
  const path = isObject(module) ? fieldOf(module, 'filename') : module; // Piscina's option
  const shown = inspect(typeof path === 'string' && path !== '' ? path : './tasks.mjs');
  const isUrl = shown.startsWith("'file:");
  const remedy = isUrl
    ? `write new URL(${shown})`
    : `write new URL(${shown}, import.meta.url), or in CommonJS pathToFileURL(require.resolve(${shown}))`;
  throw invalidType(name, 'an instance of URL', module, remedy);
}

/** The names of exports that a worker calls when it begins and when it ends. */
export type ModuleHooks = {
  readonly setup?: string | undefined;
  readonly teardown?: string | undefined;
};

/** The name of a version of the program, as a coordinator and its workers are given it. */
export const DEFINITION: RegExp = /^[\x21-\x7e]{1,128}$/;

/** @throws TypeError, InvalidArgumentError */
export function checkDefinition(name: string, definition: unknown): void {
  checkString(name, definition);
  if (DEFINITION.test(definition)) return;
  throw new InvalidArgumentError(
    'options.definition must be 1 to 128 printable ASCII characters without spaces',
  );
}

/**
 * Checks the name of `setup` or `teardown`. Whether the module exports it, its workers find out.
 *
 * @throws TypeError, InvalidArgumentError
 */
export function checkExport(option: string, name: unknown): void {
  checkString(option, name);
  if (name !== '') return;
  throw new InvalidArgumentError(
    `${option} must be the name of an export of the module; it is empty`,
  );
}

// The module of a worker: its functions, its fingerprint, and what keeps it from making the worker's
// own cluster once more: each worker of that cluster would import the module again and make another,
// without end.

// The fingerprint of a module: by it a coordinator knows whether nodes and stored results fit.

/**
 * `given:` and the definition, if one is given. Else the SHA-256 of the module's file, whatever its
 * path, without the files that it imports. If the URL is not a file's, or the file cannot be read,
 * the SHA-256 of the URL.
 */
export function moduleFingerprint(module: URL, definition?: string): string {
  if (definition !== undefined) return `given:${definition}`;
  const hash = builtin('node:crypto').createHash('sha256');
  try {
    hash.update(readFileSync(module));
  } catch {
    hash.update(module.href);
  }
  return hash.digest('hex');
}

// The functions that a worker's module exports.

export type Exports = Readonly<Record<string, unknown>>;
export type ExportedFunction = (...args: unknown[]) => unknown;

/** The object of all exports, if the module is CommonJS: Node makes it the default export. */
function moduleExports({ default: all }: Exports): Exports | undefined {
  if (typeof all !== 'object' || all === null) return undefined;
  // An array is data: its keys, which `functionNames` would list, may be millions.
  return Array.isArray(all) || ArrayBuffer.isView(all) ? undefined : (all as Exports);
}

function functionAt(exports: Exports | undefined, name: string): ExportedFunction | undefined {
  try {
    const found = exports !== undefined && Object.hasOwn(exports, name) && exports[name];
    return typeof found === 'function' ? (found as ExportedFunction) : undefined;
  } catch {
    return undefined; // a getter of module.exports: Node, too, takes such an export as missing
  }
}

/**
 * @param exports - what `import()` gave. The functions of a CommonJS module are the properties of
 *   its `module.exports`: Node names only those that it finds in the source.
 * @returns undefined if the module exports no function of this name
 */
export function exportedFunction(exports: Exports, name: string): ExportedFunction | undefined {
  return functionAt(exports, name) ?? functionAt(moduleExports(exports), name);
}

/** A class cannot be called: it is no function of the module. */
const isClass = (value: ExportedFunction): boolean =>
  /^class\b/.test(Function.prototype.toString.call(value));

export function functionNames(exports: Exports): string[] {
  const names = new Set([...Object.keys(exports), ...Object.keys(moduleExports(exports) ?? {})]);
  return [...names].filter((name) => {
    const found = exportedFunction(exports, name);
    return found !== undefined && !isClass(found);
  });
}

/** @throws TypeError: the module exports no function of this name */
export function functionOf(exports: Exports, name: string): ExportedFunction {
  const found = exportedFunction(exports, name);
  if (found !== undefined) return found;
  const meant = didYouMean(name, functionNames(exports));
  const error = new TypeError(
    `The module has no function '${name}': ${PASS_A_NAME}${meant && `.${meant}`}`,
  );
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}

/** What this thread is a worker for; undefined in a thread that is no worker of a cluster. */
let served: { readonly module: URL; readonly tell: (error: Error) => void } | undefined;

/**
 * Called before the worker imports its module. `tell` gets the error of `refuseOwnModule` also if
 * the module catches it, or makes the cluster only after its import has ended.
 */
export function serveModule(href: string, tell: (error: Error) => void): void {
  served = { module: new URL(href), tell };
}

/**
 * A function that the cluster calls may make a cluster of its own module: it ends one day.
 *
 * @param what - pool or cluster
 * @throws FailedPreconditionError: this thread is a worker with that module, and no function of the
 *   module makes the cluster, but the module itself, or a file that it imports
 */
export function refuseOwnModule(module: URL, what: string): void {
  if (served === undefined || callOfCaller() !== undefined) return;
  if (placeOf(module) !== placeOf(served.module)) return;
  const error = new FailedPreconditionError(
    `The module ${shownModule(module)} makes a ${what} while a worker imports it. Put the functions into a file of their own, or make the ${what} only outside workers: if (!Coordinator.current()), with import { Coordinator } from "allstop"`,
  );
  served.tell(error);
  throw error;
}

/** The path of the file, whatever links lead there; of another URL its text. */
export function placeOf(module: URL): string {
  if (module.protocol !== 'file:') return module.href;
  try {
    return realpathSync(module);
  } catch {
    return module.pathname;
  }
}

// Why a module cannot be imported, for people.

/** The path of the module's file; of another URL, or of a file of another host, its text. */
export function shownModule(module: URL): string {
  const path = module.protocol === 'file:' ? attempt(() => fileURLToPath(module)) : undefined;
  return path ?? module.href.slice(0, 80);
}

/** Why a `file:` URL leads to no module file. Undefined: the file is there, or the URL is another. */
export function whyNoFile(module: URL): string | undefined {
  if (module.protocol !== 'file:') return undefined;
  const found = attempt(() => statSync(module));
  if (found?.isDirectory() === true) {
    return `${shownModule(module)} is a folder (give the file of the module in it as the option 'module')`;
  }
  return found === undefined
    ? `there is no file ${shownModule(module)} (correct the option 'module')`
    : undefined;
}

/**
 * Has no frames of its own: it is made when a worker's message comes. What `noFile` and `isTypeScript`
 * say needs no cause.
 *
 * @param error - what the import has thrown; undefined: the file was only looked for
 */
export function importError(module: URL, error: unknown): UnavailableError {
  const text = `The module ${module.href} cannot be imported: ${whyNotImported(module, error)}`;
  const saysAll = whyNoFile(module) !== undefined || isTypeScript(module, error);
  const cause = saysAll || error === undefined ? {} : { cause: error };
  const made = new UnavailableError(text, cause);
  made.stack = `${made.name}: ${text}`;
  return withCallersFrames(made);
}

/** Whether this runtime loads no TypeScript. */
const isTypeScript = (module: URL, error: unknown): boolean =>
  codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.[cm]?ts$/.test(module.pathname);

/**
 * What is wrong, in one line. Of a SyntaxError the message says nothing without its line, which Node
 * tells as the first line of the stack, if at all.
 */
export function whyNotImported(module: URL, error: unknown): string {
  const noFile = whyNoFile(module);
  if (noFile !== undefined) return noFile;
  if (isTypeScript(module, error)) {
    return `Node ${process.versions.node} loads no TypeScript in a worker. Use Node 22.18 or later, the compiled file, or worker processes with a loader (isolation: 'process', execArgv: ['--import', 'tsx'])`;
  }
  const text = namedMessageOf(error);
  if (!(error instanceof SyntaxError)) return text;
  const place = /^(\S.*:\d+)\n/.exec(error.stack ?? '')?.[1];
  return place === undefined || place.startsWith('SyntaxError')
    ? `${text} (\`node ${shownModule(module)}\` shows the line)`
    : `${text}, at ${place}`;
}
