/**
 * The folders in which the package looks for its files at run time: the native binary and
 * allstop-worker.js. In an installed package they lie beside this code. If this code was
 * bundled into a program, they lie beside the bundle or the program.
 */

import { existsSync } from 'node:fs';
import nodeModule from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt } from '../../base/thrown-value.ts';

/** The file of the program. `argv` may also have something else, such as `[worker eval]`. */
function programFile(): string | undefined {
  const path: unknown = process.argv[1];
  return typeof path === 'string' && isAbsolute(path) ? path : undefined;
}

/** This file, or the bundle that it is in. A CommonJS bundle has no `import.meta`. */
function ownFile(): string | undefined {
  const url = import.meta.url as string | undefined;
  if (url !== undefined) return url.startsWith('file:') ? fileURLToPath(url) : undefined;
  return typeof __filename === 'string' && isAbsolute(__filename) ? __filename : undefined;
}

const here = ownFile();

/**
 * What lies beside this code in an installed package. Tracers such as @vercel/nft read these literal
 * URLs, so that Next, Nitro and Vercel take the files along. webpack must not, since it would make
 * assets of all binaries.
 *
 * @returns undefined in a CommonJS bundle
 */
export function besideThis(): { prebuilds: URL; worker: URL } | undefined {
  if ((import.meta.url as string | undefined)?.startsWith('file:') !== true) return undefined;
  return {
    prebuilds: new URL(/* webpackIgnore: true */ '../prebuilds', import.meta.url),
    worker: new URL(/* webpackIgnore: true */ './allstop-worker.js', import.meta.url),
  };
}

/** The `require` of this package or of the bundle. Bundlers do not follow it. */
export const require: NodeJS.Require = nodeModule.createRequire(
  here ?? programFile() ?? join(process.cwd(), 'bundle.js'),
);

/** Whether the file exists. @returns undefined if the permission model forbids looking */
export const look = (path: string): boolean | undefined => attempt(() => existsSync(path));

/** @returns undefined: of a bundle that was moved away from its node_modules */
export const packageFolder = (): string | undefined =>
  attempt(() => dirname(require.resolve('allstop/package.json')));

/** The folder of this file or of the bundle, and the folder of the program. */
export function ownFolders(): string[] {
  return [here, programFile()].filter((file) => file !== undefined).map((file) => dirname(file));
}

let rootsFound: string[] | undefined;

/** Folders that may contain prebuilds/, best first. */
export function roots(): string[] {
  if (rootsFound !== undefined) return rootsFound;
  const [own, ...others] = ownFolders();
  const prebuilds = besideThis()?.prebuilds;
  const above = prebuilds === undefined ? undefined : dirname(fileURLToPath(prebuilds));
  const found = own === undefined ? [] : [above ?? join(own, '..'), own];
  // The folder above a bundle may have the prebuilds/ of another package: look in ours, too.
  const isPackage = own !== undefined && look(join(own, '../native/include/allstop'));
  const installed = isPackage ? undefined : packageFolder();
  if (installed !== undefined) found.push(installed);
  rootsFound = [...new Set([...found, ...others])];
  return rootsFound;
}

/** The folder of the package, or of a bundle. */
export const root = (): string => roots()[0] ?? process.cwd();
