/** `allstop check-addon`: runs all cases on all runtimes, and reports what crashed and why. */

import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { counted, fitTerminal, printable } from '../../coordinator/words.ts';
import { root } from '../../native/binary/package-files.ts';
import { CommandError, type CommandResult, tableOf, untilSignal } from '../base/command.ts';
import {
  type Case,
  cases,
  ERROR,
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

type Row = Case & Outcome & { runtime: string };

/** "running, terminated": the phase of a row as it is printed. */
const phaseOf = ({ phase, ending }: Case): string => `${phase}, ${ending}`;

/** Whether the exercise itself failed. */
const isError = ({ result }: Outcome): boolean => result.startsWith(ERROR);

/** What is printed of each runtime. */
function partsOf(rows: readonly Row[]): string[] {
  return [...new Set(rows.map(({ runtime }) => runtime))].map((runtime) => {
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
  const parts = isOk ? partsOf(rows) : [...partsOf(rows), adviceOf(bad).join('\n')];
  return {
    text: `${fitTerminal(parts.join('\n\n').split('\n').map(printable))}\n`,
    json: rows.map((row) => {
      const { runtime, workers, result } = row;
      return { runtime, phase: phaseOf(row), workers, result };
    }),
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
  const script = join(root(), 'dist/cli/case-process.js');
  const limits = { timeoutMs, abort: aborter.signal };
  type Item = { runtime: Runtime; each: Case };
  const rowOf = async ({ runtime, each }: Item): Promise<Row> => {
    const order = { ...each, ...paths, afterMs: AFTER_MS };
    const outcome = aborter.signal.aborted
      ? { result: 'not run' }
      : await runCase(runtime, script, order, limits);
    if (outcome.result === 'hang') {
      const where = `${phaseOf(each)}, ${counted(each.workers, 'worker')}, ${runtime.title}`;
      process.stderr.write(`allstop: did not end within ${timeoutMs / 1_000} s: ${where}\n`);
    }
    return { ...each, ...outcome, runtime: runtime.title };
  };
  const items: Item[] = runtimes.flatMap((runtime) => cases.map((each) => ({ runtime, each })));
  const concurrency = Math.min(MOST_PROCESSES, availableParallelism());
  // Room for all results, which keep their order: a case that hangs does not hold up those behind it.
  const room = { concurrency, highWaterMark: items.length };
  return untilSignal(
    () => aborter.abort(),
    () => Readable.from(items).map(rowOf, room).toArray(),
  );
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
