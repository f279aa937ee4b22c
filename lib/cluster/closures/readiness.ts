/** The wait for a cluster to be ready, which never hangs. */

import { addAbortListener, removeAbortListener } from '../../base/abort-listeners.ts';
import { Timer } from '../../base/timer.ts';
import { ClusterNotReadyError } from '../../errors/errors.ts';
import type { ReadinessReport, TaskReadiness } from '../../errors/readiness-report.ts';
import type { ChangeListeners } from './change-listeners.ts';

export type Readiness = {
  report: () => ReadinessReport;
  /** Why waiting is of no use. */
  isHopeless: () => { why: string; cause: unknown } | undefined;
  changes: ChangeListeners;
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

/** In a message; the report has all of them. */
const MOST_BLOCKING = 10;

/** Who blocks, in a line; then of each since when, why, and what to do. */
function describe(why: string, { engine, tasks }: ReadinessReport): string {
  const blocking = tasks.filter(({ ready }) => !ready);
  const told = blocking.slice(0, MOST_BLOCKING);
  const names = told.map(({ job, task, phase }) => `${job}:${task} ${phase}`);
  const left = blocking.length - told.length;
  if (left > 0) names.push(`and ${left} more`);
  const who = names.length > 0 ? `. Not ready: ${names.join(', ')}` : '';
  const details = [
    ...(engine.phase === 'ready' || engine.phase === 'failed'
      ? []
      : [`the engine, ${engine.phase}${reasonOf(engine)}`]),
    ...told.map((task) => `${nameOf(task)}, ${task.phase} ${agoOf(task.since)}${reasonOf(task)}`),
  ];
  return [`The cluster is not ready: ${why}${who}`, ...details].join('\n  ');
}

function nameOf({ job, task, address, host, pid }: TaskReadiness): string {
  const where = host === undefined ? address : `${host}, pid ${pid}`;
  return `${job}:${task}${where === undefined ? '' : ` (${where})`}`;
}

function agoOf(since: Date): string {
  const seconds = Math.max(0, (Date.now() - since.getTime()) / 1_000);
  return `for ${seconds.toFixed(1)} s`;
}

function reasonOf({ cause, remedy }: { cause?: string; remedy?: string }): string {
  const why = cause === undefined ? '' : `: ${cause}`;
  return remedy === undefined ? why : `${why}. What to do: ${remedy}`;
}
