/** `allstop check-addon`: runs all cases on all runtimes, and reports what crashed and why. */

import { existsSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { join, resolve } from 'node:path';
import { counted, fitTerminal, printable } from '../../coordinator/words.ts';
import { root } from '../../native/binary/package-files.ts';
import { CommandError, type CommandResult, ENDING_SIGNALS, tableOf } from '../base/command.ts';
import {
  type Case,
  cases,
  type Outcome,
  type Runtime,
  runCase,
  runtimesAtHand,
} from './run-case.ts';

/**
 * The time in which native threads may touch an environment that has ended. Nothing tells that they
 * never will, so the time is a compromise.
 */
const AFTER_MS = 400;

/** More processes at once would disturb one another's times. */
const MOST_PROCESSES = 4;

/** Begins the result of a case whose exercise itself failed. */
const ERROR = 'error: ';

type Row = Case & Outcome & { runtime: string };

/** "running, terminated": the phase of a row as it is printed. */
const phaseOf = ({ phase, ending }: Case): string => `${phase}, ${ending}`;

/** Whether the exercise itself failed. */
const isError = ({ result }: Outcome): boolean => result.startsWith(ERROR);

/** Runs `work` for each of the items, a few at a time. The results have the order of the items. */
async function mapSome<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at] as T);
    }
  };
  const lanes = Math.min(MOST_PROCESSES, availableParallelism(), items.length);
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

function textOf(rows: readonly Row[]): string {
  const parts = [...new Set(rows.map(({ runtime }) => runtime))].map((runtime) => {
    const own = rows.filter((row) => row.runtime === runtime);
    const bad = own.filter(({ result }) => result !== 'ok');
    if (bad.length === 0) return `${runtime}: ${counted(own.length, 'case')}, all ok`;
    const isOneError = own.every((row) => isError(row) && row.result === own[0]?.result);
    if (isOneError) return `${runtime}: ${counted(own.length, 'case')}, none could be run`; // the advice says why
    const cells = bad.map((row) => [
      phaseOf(row),
      `${row.workers}`,
      isError(row) ? 'error' : row.result,
      row.when ?? '',
    ]);
    const why = new Set(bad.flatMap((row) => (isError(row) ? row.result : (row.said ?? []))));
    return [
      `${runtime}: ${bad.length} of ${counted(own.length, 'case')} not ok`,
      tableOf(['phase', 'workers', 'result', 'when'], cells),
      ...(why.size === 0
        ? []
        : ['Printed by the process:', ...[...why].map((line) => `  ${line}`)]),
    ].join('\n');
  });
  return fitTerminal(parts.join('\n\n').split('\n').map(printable));
}

/** The last lines, of the rows that are not ok. */
function adviceOf(bad: readonly Row[]): string[] {
  if (!bad.every(isError)) {
    return ['How an addon survives its worker: docs/surviving-addons.md in the package.'];
  }
  const exported = bad.find(({ exports }) => exports !== undefined)?.exports;
  const reasons = new Set(bad.map(({ result }) => result.slice(ERROR.length)));
  return [
    ...[...reasons].map((reason) => `The exercise itself failed: ${reason}`),
    ...(exported ? [`The addon exports: ${exported.join(', ') || 'nothing'}`] : []),
  ];
}

function report(rows: readonly Row[]): CommandResult {
  const bad = rows.filter(({ result }) => result !== 'ok');
  const isOk = bad.length === 0;
  const advice = isOk
    ? ''
    : `\n\n${fitTerminal(
        adviceOf(bad)
          .flatMap((line) => line.split('\n'))
          .map(printable),
      )}`;
  return {
    text: `${textOf(rows)}${advice}\n`,
    json: rows.map((row) => ({
      runtime: row.runtime,
      phase: phaseOf(row),
      workers: row.workers,
      result: row.result,
    })),
    exitCode: isOk ? 0 : 1,
  };
}

/** @throws CommandError if a signal ends this process */
async function runAll(
  runtimes: readonly Runtime[],
  paths: { addon: string; script: string },
  timeoutMs: number,
): Promise<Row[]> {
  const aborter = new AbortController();
  let endedBy: NodeJS.Signals | undefined;
  const end = (signal: NodeJS.Signals): void => {
    endedBy = signal;
    aborter.abort();
  };
  for (const signal of ENDING_SIGNALS) process.on(signal, end);
  const worker = join(root(), 'dist/cli/exercise-worker.js');
  const script = join(root(), 'dist/cli/case-process.js');
  const rows = await mapSome(
    runtimes.flatMap((runtime) => cases.map((each) => ({ runtime, each }))),
    async ({ runtime, each }): Promise<Row> => {
      const order = { ...each, ...paths, worker, afterMs: AFTER_MS };
      const limits = { timeoutMs, abort: aborter.signal };
      const outcome = aborter.signal.aborted
        ? { result: 'not run' }
        : await runCase(runtime, script, order, limits);
      if (outcome.result === 'hang') {
        const where = `${phaseOf(each)}, ${counted(each.workers, 'worker')}, ${runtime.title}`;
        process.stderr.write(`allstop: did not end within ${timeoutMs / 1_000} s: ${where}\n`);
      }
      return { ...each, ...outcome, runtime: runtime.title };
    },
  );
  for (const signal of ENDING_SIGNALS) process.off(signal, end);
  if (endedBy === undefined) return rows;
  throw new CommandError(`ended by ${endedBy}`, 128 + constants.signals[endedBy]);
}

/** @throws UsageError, CommandError */
export async function check(options: {
  addon: string;
  exercise: string;
  runtimes: string | undefined;
  timeoutMs: number;
}): Promise<CommandResult> {
  const paths = { addon: resolve(options.addon), script: resolve(options.exercise) };
  for (const path of Object.values(paths)) {
    if (!existsSync(path)) throw new CommandError(`there is no file ${path}`);
  }
  const runtimes = runtimesAtHand(options.runtimes);
  const titles = runtimes.map(({ title }) => title).join(', ');
  process.stderr.write(`allstop: ${cases.length} cases on ${titles}\n`);
  return report(await runAll(runtimes, paths, options.timeoutMs));
}
