/** What a slot says about its worker, for people. */

import { hostname } from 'node:os';
import { messageOf } from '../../base/thrown-value.ts';
import type { ShownWorker } from '../../coordinator/threads/busy-workers.ts';
import { duration } from '../../coordinator/words.ts';
import { localRemedy, type TaskPhase } from '../../errors/phases.ts';
import type { TaskReadiness } from '../../errors/readiness-report.ts';
import type { Call } from '../queue/closure.ts';
import type { RunningCall, WorkerInfo } from '../queue/strategy.ts';
import type { WorkerChannel, WorkerName } from './channel.ts';
import type { Sent } from './sent-closures.ts';

/**
 * What the worker runs, and for how long, for `explain()`; '' if it is idle.
 *
 * @param sent - the number of closures that were sent to it and have not ended
 */
function activityOf(calls: readonly RunningCall[], sent: number): string {
  const running = calls.map(
    ({ name, startedAt }) => `'${name}' for ${duration(Date.now() - startedAt.getTime())}`,
  );
  const more = sent - calls.length;
  if (running.length === 0) return '';
  return `: runs ${running.join(', ')}${more === 0 ? '' : `, ${more} more sent`}`;
}

export function workerInfo(
  { job, index }: WorkerName,
  pid: number,
  state: WorkerInfo['state'],
  slot: Pick<WorkerInfo, 'running' | 'completed' | 'restarts' | 'calls'>,
): WorkerInfo {
  const { running, completed, restarts, calls } = slot;
  const counts = { running, completed, restarts, calls };
  return { name: `${job}:${index}`, job, index, state, host: hostname(), pid, ...counts };
}

/** `earliest`: Date.now() when it can have begun at the earliest. */
export const runningCall = ({ closure, sentAt }: Sent, earliest: number): RunningCall => ({
  name: (closure.work as Call).name,
  attempt: closure.attempts + 1,
  startedAt: new Date(Math.max(sentAt, earliest)),
});

type Shown = Pick<WorkerChannel, 'pid' | 'place' | 'threadId'>;

/** A worker with what it runs, now and later. */
export function shownWorker(
  { job, index }: WorkerName,
  { pid, place, threadId }: Shown,
  ran: { readonly calls: readonly RunningCall[]; readonly running: number },
): ShownWorker {
  const name = `${job}:${index} (${place})`;
  return {
    describe: () => `${name}${activityOf(ran.calls, ran.running)}`,
    busy: () =>
      ran.calls.map((call) => ({
        text: `${name} runs '${call.name}'`,
        startedAt: call.startedAt,
        pid,
        threadId,
      })),
  };
}

/** A thread that is blocked in native code and could not be ended. */
export function stuckWorker(
  { job, index }: WorkerName,
  { pid, place, threadId }: Shown,
  calls: readonly RunningCall[],
): ShownWorker {
  const name = `${job}:${index} (${place})`;
  return {
    describe: () => `${name}${activityOf(calls, calls.length)}; it is stuck in native code`,
    busy: () =>
      calls.map((call) => ({
        text: `${name}, which is stuck in native code, runs '${call.name}'`,
        startedAt: call.startedAt,
        pid,
        threadId,
      })),
  };
}

type State = {
  ready: boolean;
  phase: TaskPhase;
  since: Date;
  /** Undefined: there is no worker now. */
  pid: number | undefined;
  cause: unknown;
};

export function readinessOf({ job, index }: WorkerName, state: State): TaskReadiness {
  const { ready, phase, since, pid, cause } = state;
  const report: TaskReadiness = { job, task: index, host: hostname(), ready, phase, since };
  if (pid !== undefined) report.pid = pid;
  if (!ready && cause !== undefined) {
    report.cause = messageOf(cause);
    report.remedy = localRemedy(phase, report.cause);
  }
  return report;
}
