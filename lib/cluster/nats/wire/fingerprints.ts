/** What a module is, wherever its file lies, and a spec: so that all mean the same by them. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ClusterSpec } from '../../cluster-spec.ts';

/**
 * The hash of the module's file. What it imports is not looked at. A module that is no file,
 * or cannot be read, is known by its address.
 */
export async function moduleFingerprint(module: URL): Promise<string> {
  const hash = createHash('sha256');
  try {
    hash.update(await readFile(module));
  } catch {
    hash.update(module.href);
  }
  return hash.digest('hex');
}

/** Specs that are equal have the same. */
export function specFingerprint(spec: ClusterSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}
