/** A ClusterSpec from JSON, as `allstop worker --spec` reads it: made, or refused with a code. */

import { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import { changeJson, must } from './oracle.ts';

export const mutate = changeJson;

const CODES = new Set([
  'ERR_INVALID_ARG_TYPE',
  'ERR_OUT_OF_RANGE',
  'ERR_ALLSTOP_INVALID_ARGUMENT', // the name of a job is empty
]);

export function fuzz(bytes: Uint8Array): void {
  let jobs: unknown;
  try {
    jobs = JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return;
  }
  let spec: ClusterSpec;
  try {
    spec = new ClusterSpec(jobs as ConstructorParameters<typeof ClusterSpec>[0]);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    must(code !== undefined && CODES.has(code), `a code: ${message}`);
    return;
  }
  const again = new ClusterSpec(JSON.parse(JSON.stringify(spec)));
  must(spec.equals(again) && again.equals(spec), 'a spec is kept');
  must(JSON.stringify(again) === JSON.stringify(spec), 'equal specs have equal fingerprints');
  must(ClusterSpec.union(spec).equals(spec), 'a union of one is that one');
  for (const job of spec.jobs) {
    must(spec.numTasks(job) === spec.taskIndices(job).length, 'each task has an index');
    for (const index of spec.taskIndices(job)) {
      must(spec.taskAddress(job, index) !== '', 'each task has an address');
    }
  }
}
