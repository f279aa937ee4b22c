/** A check of `allstop doctor`, and how its result is printed. */

import * as util from 'node:util';
import { messageOf } from '../../base/thrown-value.ts';
import { counted, fitTerminal, printable } from '../../coordinator/words.ts';
import type { Candidate } from '../../native/binary/binary.ts';
import { bugsUrl, type CommandResult } from '../base/command.ts';

/**
 * `allstop doctor --json` prints these objects: a public format, to which fields are only added.
 */
export type Check = {
  /** What was checked, in a word: 'binary'. */
  name: string;
  ok: boolean;
  /** The thing that was checked: a path, a platform, a server. */
  target?: string;
  detail?: string;
  /** True: neither the server nor we ask for it (TLS, credentials), so that nothing was checked. */
  unused?: boolean;
  /** `cause` and `remedy` are set only if `ok` is false. */
  cause?: string;
  remedy?: string;
};

/** The remedy for a fault of allstop itself. */
export const REPORT_BUG: string = `report this as a bug of allstop, with the output of allstop doctor --json: ${bugsUrl}`;

/** A check that is not ok. */
export const problem = (
  check: Pick<Check, 'name' | 'target' | 'detail'>,
  cause: string,
  remedy: string,
): Check => ({ ...check, ok: false, cause, remedy });

/** The result of a check that threw. It counts as a problem: doctor must report, not crash. */
export const impossible = (name: string, error: unknown): Check =>
  problem({ name }, `the check failed: ${messageOf(error)}`, REPORT_BUG);

/** The name of checks that are for information only and never fail. */
export const QUIRK = 'quirk';

const MARK_WIDTH = 'not ok'.length;

/**
 * Colours `text` on a terminal. As in Node, FORCE_COLOR (but not 0 or false) wants colours
 * everywhere, and goes before NO_COLOR. Node before 20.12 has no styleText: no colours there.
 */
export function paint(colour: 'red' | 'green' | 'yellow', text: string): string {
  const { NO_COLOR: no, FORCE_COLOR: force } = process.env;
  const wanted =
    force === undefined || force === ''
      ? process.stdout.isTTY && !no
      : !['0', 'false'].includes(force);
  return wanted && 'styleText' in util ? util.styleText(colour, text) : text;
}

/** Broken at spaces where stdout is a terminal, and painted then: escapes have no width. */
function linesOf({ name, ok, target, detail, cause, remedy }: Check, nameWidth: number): string[] {
  const word = ok ? (name === QUIRK ? 'note' : 'ok') : 'not ok';
  const colour = name === QUIRK ? 'yellow' : ok ? 'green' : 'red';
  const mark = word.padEnd(MARK_WIDTH);
  const isBoth = target !== undefined && detail !== undefined;
  const what = isBoth ? `${target} (${detail})` : (target ?? detail ?? '');
  const indent = ' '.repeat(MARK_WIDTH + nameWidth + 4);
  const lines = [`${mark}  ${name.padEnd(nameWidth)}  ${what}`.trimEnd()];
  if (cause !== undefined) lines.push(`${indent}Cause: ${cause}`);
  if (remedy !== undefined) lines.push(`${indent}What to do: ${remedy}`);
  const [first = '', ...rest] = lines.map((line) => fitTerminal([printable(line)]));
  return [paint(colour, mark) + first.slice(MARK_WIDTH), ...rest];
}

/** `withNotes`: as of `diagnose`. */
export function report(checks: Check[], withNotes: boolean): CommandResult {
  const problems = checks.filter(({ ok }) => !ok).length;
  const ok = problems === 0;
  const nameWidth = Math.max(...checks.map(({ name }) => name.length));
  const summary = ok ? 'allstop works here.' : `${counted(problems, 'problem')} found.`;
  const notes = checks.filter(({ name }) => name === QUIRK);
  const shown = withNotes ? checks : checks.filter((each) => !notes.includes(each));
  const lines = shown.flatMap((check) => linesOf(check, nameWidth));
  if (!withNotes && notes.length > 0) {
    const count = counted(notes.length, 'note');
    lines.push('', fitTerminal([`${count} about this runtime: allstop doctor --verbose`]));
  }
  lines.push('', summary);
  return { text: `${lines.join('\n')}\n`, json: { ok, checks }, exitCode: ok ? 0 : 1 };
}

// The results of loading the native binary and of running the self-test with it.

/** A binary that loads. `passedOver`: the binaries that were tried before, with their errors. */
export type Loaded = { from: Candidate; abi: string | undefined; passedOver: string[] };
export type Problem = { from?: Candidate | undefined; cause: string; remedy?: string | undefined };

/**
 * All findings of one probe, which it tells one by one: `loaded`, then `tested` or `untested`. `failed`
 * comes in the place of any of them and is the last. `crash`: how the child process ended, if that was
 * too early or with an exit code other than 0; after it nothing is told.
 */
export type Probe = {
  loaded?: Loaded;
  failed?: Problem;
  tested?: { ms: number };
  untested?: string;
  crash?: string;
};
