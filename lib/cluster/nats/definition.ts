/** What a module is, wherever its file lies: so that all run the same functions. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/**
 * The hash of the module's file. What it imports is not looked at. A module that is no file,
 * or cannot be read, is known by its address.
 */
export async function definitionOf(module: URL): Promise<string> {
  const hash = createHash('sha256');
  try {
    hash.update(await readFile(module));
  } catch {
    hash.update(module.href);
  }
  return hash.digest('hex');
}
