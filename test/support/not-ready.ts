/** Waits for readiness reports of a cluster. */

import { setTimeout } from 'node:timers/promises';
import {
  type ClusterCoordinator,
  ClusterNotReadyError,
  type ReadinessReport,
} from 'allstop/cluster';

const FOUND = new Error('found');

/**
 * Waits until `isIt` accepts the report. Resolves to the error with which `ready()` then rejects.
 */
export async function whyNotReady(
  cluster: ClusterCoordinator,
  isIt: (report: ReadinessReport) => boolean,
): Promise<ClusterNotReadyError> {
  await untilReport(cluster, isIt);
  const error: unknown = await cluster.ready({ timeoutMs: 0 }).catch((reason: unknown) => reason);
  if (error instanceof ClusterNotReadyError) return error;
  throw new Error('The cluster is ready', { cause: error });
}

/** Resolves when `isIt` accepts the report, whether the cluster is ready or not. */
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
    // The cluster is ready, and no event announces that it is not any more: ask again.
    await setTimeout(10);
  }
  throw new Error(`No report was accepted. The last one: ${JSON.stringify(last[0])}`);
}
