/** The fingerprint of a module: by it a coordinator knows whether nodes and stored results fit. */

import { readFileSync } from 'node:fs';
import { builtin } from '../../../base/builtins.ts';

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
