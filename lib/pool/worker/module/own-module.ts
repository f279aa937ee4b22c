/**
 * The module of a worker: its functions, its fingerprint, and what keeps it from making the worker's
 * own cluster once more: each worker of that cluster would import the module again and make another,
 * without end.
 */

import { readFileSync, realpathSync } from 'node:fs';
import { didYouMean } from '../../../base/arguments.ts';
import { builtin } from '../../../base/builtins.ts';
import { FailedPreconditionError } from '../../../errors/errors.ts';
import { callOfCaller } from '../call-store.ts';
import { PASS_A_NAME } from '../protocol.ts';
import { shownModule } from './import-error.ts';

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

export function functionNames(exports: Exports): string[] {
  const names = new Set([...Object.keys(exports), ...Object.keys(moduleExports(exports) ?? {})]);
  return [...names].filter((name) => exportedFunction(exports, name) !== undefined);
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
