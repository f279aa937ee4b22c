/** What `allstop doctor` found out, and how it is told. */

import * as util from 'node:util';
import type { CommandResult } from '../base/command.ts';

/** The shape of the JSON is public: fields are only ever added. */
export type Check = {
  /** What was looked at, in a word. */
  name: string;
  ok: boolean;
  /** The very thing: a path, a platform. */
  target?: string;
  detail?: string;
  /** Only if it is not ok. */
  cause?: string;
  remedy?: string;
};

/** Checks of this name are for information, they never fail. */
export const QUIRK = 'quirk';

const MARK_WIDTH = 'not ok'.length;

/** Node 20.12 is needed, and doctor has to be able to say that it is. */
export function paint(colour: 'red' | 'green', text: string): string {
  const wanted = process.stdout.isTTY && !process.env['NO_COLOR'];
  return wanted && 'styleText' in util ? util.styleText(colour, text) : text;
}

function linesOf({ name, ok, target, detail, cause, remedy }: Check, nameWidth: number): string[] {
  const word = ok ? (name === QUIRK ? 'note' : 'ok') : 'not ok';
  const mark = paint(ok ? 'green' : 'red', word.padEnd(MARK_WIDTH));
  const what =
    target !== undefined && detail !== undefined
      ? `${target} (${detail})`
      : (target ?? detail ?? '');
  const indent = ' '.repeat(MARK_WIDTH + nameWidth + 4);
  const lines = [`${mark}  ${name.padEnd(nameWidth)}  ${what}`.trimEnd()];
  if (cause !== undefined) lines.push(`${indent}cause:  ${cause}`);
  if (remedy !== undefined) lines.push(`${indent}remedy: ${remedy}`);
  return lines;
}

export function report(checks: Check[]): CommandResult {
  const problems = checks.filter(({ ok }) => !ok).length;
  const ok = problems === 0;
  const nameWidth = Math.max(...checks.map(({ name }) => name.length));
  const summary = ok
    ? 'allstop works here.'
    : `${problems} ${problems === 1 ? 'problem' : 'problems'} found.`;
  const lines = [...checks.flatMap((check) => linesOf(check, nameWidth)), '', summary];
  return { text: `${lines.join('\n')}\n`, json: { ok, checks }, exitCode: ok ? 0 : 1 };
}
