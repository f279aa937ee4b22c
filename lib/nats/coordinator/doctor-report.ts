/** What a coordinator tells `allstop doctor`, cut to the length that the server permits; and its work, for `explain()`. */

import { oneLine } from '../../base/thrown-value.ts';
import { requestOf } from '../../coordinator/explain.ts';
import { counted, duration } from '../../coordinator/words.ts';
import type { ReadinessReport } from '../../errors/phases.ts';
import type { StopRecord } from '../../record/stop-record.ts';
import {
  type CoordinatorReport,
  json,
  type RefusedNode,
  type WorkReport,
} from '../wire/control-messages.ts';

/** The most tasks, and the most refused nodes, in one report. */
const MAX_ENTRIES = 1_000;

export type DoctorReportOptions = {
  run: string;
  report: ReadinessReport;
  refused: RefusedNode[];
  malformed: number;
  work: WorkReport;
  stop: StopRecord | undefined;
  maxBytes: number;
};

/** What waits and what fails, for people. */
export function workLines({ waiting, oldest, blocked, failures }: WorkReport): string[] {
  const why = blocked === undefined ? '' : `: ${blocked}`;
  const line =
    oldest === undefined
      ? []
      : [
          `${counted(waiting, 'call')} ${waiting === 1 ? 'waits' : 'wait'}, '${oldest.name}' for ${duration(oldest.ms)}${why}`,
        ];
  const failed = failures.map(
    ({ name, count, last }) =>
      `'${name}' has failed ${count === 1 ? 'once' : `${count} times`} in the last minutes. The last: ${last}`,
  );
  return [...line, ...failed];
}

/** Halves the number of entries until the report fits. Tasks that are not ready come first. */
export function doctorReport(options: DoctorReportOptions): Uint8Array {
  let count = MAX_ENTRIES;
  let bytes = json(reportOf(options, count));
  while (bytes.byteLength > options.maxBytes && count > 0) {
    count = Math.floor(count / 2);
    bytes = json(reportOf(options, count));
  }
  return bytes;
}

/** Who has stopped the run, for people. */
function stopOf({
  kind,
  requester,
  requestedAt,
  error,
}: StopRecord): NonNullable<CoordinatorReport['stop']> {
  const { worker, host } = requester;
  const where = worker === undefined ? '' : ` on ${worker} (${host})`;
  const what = kind === 'plain' ? 'no error' : oneLine(error);
  const ms = Date.now() - requestedAt.getTime();
  return { ms, why: `${requestOf(requester)}${where}: ${what}` };
}

function reportOf(
  { run, report, refused, malformed, work, stop }: DoctorReportOptions,
  count: number,
): CoordinatorReport {
  const { tasks } = report;
  const ordered = [...tasks.filter(({ ready }) => !ready), ...tasks.filter(({ ready }) => ready)];
  const kept = ordered.slice(0, count);
  return {
    run,
    report: { ...report, tasks: kept },
    leftOff: tasks.length - kept.length,
    turnedAway: refused.slice(0, count),
    dropped: malformed,
    ...(stop !== undefined && { stop: stopOf(stop) }),
    work: {
      ...work,
      running: work.running.slice(0, count),
      failures: work.failures.slice(0, count),
    },
  };
}
