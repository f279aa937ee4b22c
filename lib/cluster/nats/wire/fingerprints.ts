/**
 * Fingerprints (SHA-256) of a module file and of a ClusterSpec, by which a coordinator checks
 * that its nodes have the same module and spec. The paths of the files do not matter.
 */

import { createHash } from 'node:crypto';
import type { ClusterSpec } from '../../cluster-spec.ts';

export { moduleFingerprint } from '../../worker/module-fingerprint.ts';

/** Equal specs have equal fingerprints, in whatever order their tasks were given. */
export function specFingerprint(spec: ClusterSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}
