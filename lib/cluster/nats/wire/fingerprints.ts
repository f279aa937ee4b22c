/**
 * Fingerprints (SHA-256) of a module file and of a ClusterSpec, by which a coordinator checks
 * that its nodes have the same module and spec. The paths of the files do not matter.
 */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ClusterSpec } from '../../cluster-spec.ts';

/**
 * `given:` and the definition, if one is given. Else the hash of the module's file, without the files that it imports. If the URL is not a file's,
 * or the file cannot be read, the hash of the URL.
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

/** Equal specs have equal fingerprints, in whatever order their tasks were given. */
export function specFingerprint(spec: ClusterSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}
