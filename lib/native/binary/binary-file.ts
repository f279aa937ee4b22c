/** Looks at a file that is to be loaded: some would end the process, or hold it up for good. */

import { statSync } from 'node:fs';
import { readElf } from './elf.ts';

/** Not even given to Node, or of no use when loaded. The message is the cause, for people. */
export class UnfitError extends Error {}

/** @throws UnfitError; what the file system says */
export function checkFile(path: string): void {
  if (!path.endsWith('.node')) throw new UnfitError('the name of a native addon ends in .node');
  const stats = statSync(path);
  if (stats.isDirectory()) throw new UnfitError('it is a directory');
  if (!stats.isFile()) throw new UnfitError('it is not a regular file');
  // The system maps what is missing, too, and ends the process that reads it.
  if (process.platform === 'linux' && readElf(path)?.isWhole === false) {
    throw new UnfitError('it is damaged: its end is missing');
  }
}
