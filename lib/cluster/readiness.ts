/** The wait for a cluster to be ready, which never hangs. */

import { addAbortListener, removeAbortListener } from '../abort-listeners.ts';
import { ClusterNotReadyError } from '../errors.ts';
import { Timer } from '../timer.ts';
import type { Changes } from './changes.ts';
import type { ReadinessReport } from './strategy.ts';

export type Readiness = {
  report: () => ReadinessReport;
  /** Why waiting is of no use. */
  isHopeless: () => { why: string; cause: unknown } | undefined;
  changes: Changes;
  timeoutMs: number;
  signal: AbortSignal | undefined;
  onProgress: ((report: ReadinessReport) => void) | undefined;
};

/** Rejects with ClusterNotReadyError, the reason of `signal`, or what `onProgress` throws. */
export function whenReady(options: Readiness): Promise<void> {
  const { report, isHopeless, changes, timeoutMs, signal, onProgress } = options;
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      timer.clear();
      changes.delete(look);
      if (signal !== undefined) removeAbortListener(signal, onAbort);
      settle();
    };
    const notReady = (why: string, cause: unknown): void => {
      const found = report();
      const error = new ClusterNotReadyError(describe(why, found), { cause, report: found });
      end(() => reject(error));
    };
    const look = (): void => {
      const found = report();
      try {
        onProgress?.(found);
      } catch (error) {
        end(() => reject(error as Error));
        return;
      }
      const hopeless = isHopeless();
      if (hopeless !== undefined) notReady(hopeless.why, hopeless.cause);
      else if (found.ready) end(resolve);
    };
    const onAbort = (): void => end(() => reject(signal?.reason as Error));
    const timer = new Timer(timeoutMs, () => notReady(`not after ${timeoutMs} ms`, undefined));
    if (signal !== undefined) addAbortListener(signal, onAbort);
    changes.add(look);
    look();
  });
}

function describe(why: string, { tasks }: ReadinessReport): string {
  const blocking = tasks
    .filter(({ ready }) => !ready)
    .map(({ job, task, phase, cause }) => `${job}:${task} ${phase}${cause ? ` (${cause})` : ''}`);
  const who = blocking.length > 0 ? `. Not ready: ${blocking.join(', ')}` : '';
  return `The cluster is not ready: ${why}${who}`;
}
