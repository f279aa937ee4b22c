/** The fingerprint of a module: by it a coordinator knows whether nodes and stored results fit. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/**
 * `given:` and the definition, if one is given. Else the SHA-256 of the module's file, whatever its
 * path, without the files that it imports. If the URL is not a file's, or the file cannot be read,
 * the SHA-256 of the URL.
 */
export async function moduleFingerprint(module: URL, definition?: string): Promise<string> {
  if (definition !== undefined) return `given:${definition}`;
  const hash = createHash('sha256');
  try {
    hash.update(await readFile(module));
  } catch {
    hash.update(module.href);
  }
  return hash.digest('hex');
}
