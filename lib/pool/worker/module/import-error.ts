/** Why a module cannot be imported, for people. */

import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withCallersFrames } from '../../../base/callers-frames.ts';
import { attempt, codeOf, namedMessageOf } from '../../../base/thrown-value.ts';
import { UnavailableError } from '../../../errors/errors.ts';

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
