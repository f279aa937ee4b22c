/** Why a cluster is not ready, as `ready()` says it, once it has come to know. */

import { setTimeout } from 'node:timers/promises';
import {
  type ClusterCoordinator,
  ClusterNotReadyError,
  type ReadinessReport,
} from 'allstop/cluster';

const FOUND = new Error('found');

/** What `ready()` rejects with when the report has become such a one. */
export async function whyNotReady(
  cluster: ClusterCoordinator,
  isIt: (report: ReadinessReport) => boolean,
): Promise<ClusterNotReadyError> {
  await untilReport(cluster, isIt);
  const error: unknown = await cluster.ready({ timeoutMs: 0 }).catch((reason: unknown) => reason);
  if (error instanceof ClusterNotReadyError) return error;
  throw new Error('The cluster is ready', { cause: error });
}

/** Resolves when the report has become such a one: from not ready to ready, or back. */
export async function untilReport(
  cluster: ClusterCoordinator,
  isIt: (report: ReadinessReport) => boolean,
  over?: AbortSignal,
): Promise<void> {
  const last: ReadinessReport[] = [];
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    if (over?.aborted === true) return;
    const abort = new AbortController();
    const onProgress = (report: ReadinessReport): void => {
      last[0] = report;
      if (isIt(report)) abort.abort(FOUND);
    };
    try {
      await cluster.ready({ timeoutMs: 5_000, signal: abort.signal, onProgress });
    } catch (error) {
      if (!abort.signal.aborted && !(error instanceof ClusterNotReadyError)) throw error;
    }
    if (abort.signal.aborted) return;
    // It is ready, and nothing tells when it will not be: looked at again.
    await setTimeout(10);
  }
  throw new Error(`Never so: ${JSON.stringify(last[0])}`);
}
