/**
 * Where the files of the package are that are found at run time: the native binary, and
 * what its workers execute. In an installed package beside this file; in a bundle, where
 * this file is part of something else, beside the bundle or the program.
 */

import { existsSync } from 'node:fs';
import nodeModule from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The file of the program; anything may be in `argv`, as `[worker eval]` is. */
function programFile(): string | undefined {
  const path: unknown = process.argv[1];
  return typeof path === 'string' && isAbsolute(path) ? path : undefined;
}

/** This file or the bundle; a bundle in CommonJS has no `import.meta`. */
function ownFile(): string | undefined {
  const url = import.meta.url as string | undefined;
  if (url !== undefined) return url.startsWith('file:') ? fileURLToPath(url) : undefined;
  return typeof __filename === 'string' && isAbsolute(__filename) ? __filename : undefined;
}

const here = ownFile();

/** Of this package, or of the bundle; bundlers do not follow it. */
export const require: NodeJS.Require = nodeModule.createRequire(
  here ?? programFile() ?? join(process.cwd(), 'bundle.js'),
);

/** Whether it is there; undefined: the permission model forbids to look. */
export function look(path: string): boolean | undefined {
  try {
    return existsSync(path);
  } catch {
    return undefined;
  }
}

export function packageFolder(): string | undefined {
  try {
    return dirname(require.resolve('allstop/package.json'));
  } catch {
    return undefined; // a bundle that has left its node_modules behind
  }
}

/** The folder of this file or of the bundle, and that of the program. */
export function ownFolders(): string[] {
  return [here, programFile()].filter((file) => file !== undefined).map((file) => dirname(file));
}

let rootsFound: string[] | undefined;

/** Folders that may hold prebuilds/, best first. */
export function roots(): string[] {
  if (rootsFound !== undefined) return rootsFound;
  const [own, ...others] = ownFolders();
  const found = own === undefined ? [] : [join(own, '..'), own];
  // Above a bundle there may be the prebuilds/ of another package.
  const isPackage = own !== undefined && look(join(own, '../native/include/allstop'));
  const installed = isPackage ? undefined : packageFolder();
  if (installed !== undefined) found.push(installed);
  rootsFound = [...new Set([...found, ...others])];
  return rootsFound;
}

/** The folder of the package, or of a bundle. */
export const root = (): string => roots()[0] ?? process.cwd();
