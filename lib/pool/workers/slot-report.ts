/** What a slot says about its worker, for people. */

import { builtin } from '../../base/builtins.ts';
import { messageOf } from '../../base/thrown-value.ts';
import type { ShownWorker } from '../../coordinator/threads/busy-workers.ts';
import { duration } from '../../coordinator/words.ts';
import { localRemedy, type TaskPhase, type TaskReadiness } from '../../errors/phases.ts';
import type { RunningCall } from '../queue/strategy.ts';
import type { WorkerChannel, WorkerName } from './channel.ts';

/**
 * What the worker runs, and for how long, for `explain()`; '' if it is idle.
 *
 * @param sent - the number of calls that were sent to it and have not ended
 */
export function activityOf(calls: readonly RunningCall[], sent: number): string {
  const running = calls.map(
    ({ name, startedAt }) => `'${name}' for ${duration(Date.now() - startedAt.getTime())}`,
  );
  const more = sent - calls.length;
  if (running.length === 0) return '';
  return `: runs ${running.join(', ')}${more === 0 ? '' : `, ${more} more sent`}`;
}

type Shown = Pick<WorkerChannel, 'pid' | 'place' | 'threadId'>;

/** A worker with what it runs, now and later. `isStuck`: in native code, and it cannot be ended. */
export function shownWorker(
  { job, index }: WorkerName,
  { pid, place, threadId }: Shown,
  ran: { readonly calls: readonly RunningCall[]; readonly running: number },
  isStuck = false,
): ShownWorker {
  const name = `${job}:${index} (${place})`;
  const who = isStuck ? `${name}, which is stuck in native code,` : name;
  return {
    describe() {
      const activity = activityOf(ran.calls, ran.running);
      return `${name}${activity}${isStuck ? '; it is stuck in native code' : ''}`;
    },
    busy: () =>
      ran.calls.map((call) => ({
        text: `${who} runs '${call.name}'`,
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
  const report: TaskReadiness = {
    job,
    task: index,
    host: builtin('node:os').hostname(),
    ready,
    phase,
    since,
  };
  if (pid !== undefined) report.pid = pid;
  if (!ready && cause !== undefined) {
    report.cause = messageOf(cause);
    report.remedy = localRemedy(phase, report.cause);
  }
  return report;
}
