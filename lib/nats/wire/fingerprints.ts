/**
 * Fingerprints (SHA-256) of a module file and of a ClusterSpec, by which a coordinator checks
 * that its nodes have the same module and spec. The paths of the files do not matter.
 */

import { createHash } from 'node:crypto';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import { importError, moduleFingerprint, whyNoFile } from '../../pool/worker/module.ts';

export { moduleFingerprint };

/**
 * The definition or SHA-256 of the coordinator's module file, and the SHA-256 of the ClusterSpec that
 * it expects; undefined if it expects none.
 */
export type Fingerprints = { module: string; spec: string | undefined };

/** Equal specs have equal fingerprints, in whatever order their tasks were given. */
export function specFingerprint(spec: ClusterSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}

/**
 * What the nodes of a coordinator must have.
 *
 * @throws (rejects) UnavailableError: there is no such file, and no definition takes its place
 */
export async function fingerprintsOf({
  module,
  definition,
  expect,
}: {
  module: URL;
  definition: string | undefined;
  expect: ClusterSpec | undefined;
}): Promise<Fingerprints> {
  if (definition === undefined && whyNoFile(module) !== undefined) {
    throw importError(module, undefined);
  }
  return {
    module: moduleFingerprint(module, definition),
    spec: expect && specFingerprint(expect),
  };
}
