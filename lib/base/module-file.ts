/**
 * The file of a module. One source names its modules as its compiled output does, `tasks.js`, also
 * where a runner executes the sources, and there is only `tasks.ts`. TypeScript's own rule.
 */

import { statSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { attempt } from './thrown-value.ts';

const COMPILED = /\.([cm]?)js$/;

const isFile = (file: URL): boolean => attempt(() => statSync(file))?.isFile() === true;

/** @returns the TypeScript file beside a JavaScript file that is not there; else `module` */
export function moduleFile(module: URL): URL {
  if (module.protocol !== 'file:' || !COMPILED.test(module.pathname) || isFile(module)) {
    return module;
  }
  const source = new URL(module);
  source.pathname = source.pathname.replace(COMPILED, '.$1ts');
  return isFile(source) ? source : module;
}

/** As `moduleFile`, also for a path; any other value is returned as it is. */
export function moduleFileOrPath<T>(module: T): T | URL | string {
  if (module instanceof URL) return moduleFile(module);
  if (typeof module !== 'string' || !COMPILED.test(module)) return module;
  const file = pathToFileURL(module);
  const found = moduleFile(file);
  return found === file ? module : fileURLToPath(found);
}
