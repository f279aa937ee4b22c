/** Times, durations and lines of text as people read them, for `explain()` and `diagnose()`. */

import { stripVTControlCharacters } from 'node:util';
import { printable } from '../base/thrown-value.ts';

export { printable };

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** Local time with its offset from UTC; with the date where it is not today's. */
export function clock(date: Date, now: number = Date.now()): string {
  const day = (of: Date): string =>
    `${of.getFullYear()}-${two(of.getMonth() + 1)}-${two(of.getDate())}`;
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
  const east = -date.getTimezoneOffset(); // in minutes
  const sign = east < 0 ? '-' : '+';
  const offset = `${sign}${two(Math.floor(Math.abs(east) / 60))}:${two(Math.abs(east) % 60)}`;
  const prefix = day(date) === day(new Date(now)) ? '' : `${day(date)} `;
  return `${prefix}${time} ${offset}`;
}

/** A duration with its two largest units: "340 ms", "2.5 s", "1 min 20 s", "2 h 3 min", "3 d". */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  const tenths = Math.floor(whole / 100);
  if (tenths < 100) return `${tenths / 10} s`;
  const seconds = Math.floor(whole / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return units(minutes, 'min', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return units(hours, 'h', minutes % 60, 'min');
  return units(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function units(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** "2 h 3 min ago" */
export function since(date: Date, now: number): string {
  return `${duration(now - date.getTime())} ago`;
}

/** "1 producer", "2 producers" */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Lines are not broken to fewer columns, however narrow the terminal is. */
const MIN_WIDTH = 40;

/**
 * Breaks long lines at spaces, if this process writes to a terminal; a word that is longer, too. One of
 * `lines` may be several, as the text of `explain()` in that of `diagnose()`.
 */
export function fitTerminal(lines: readonly string[]): string {
  const { columns } = process.stdout.isTTY ? process.stdout : process.stderr;
  const text = lines.join('\n');
  if (typeof columns !== 'number' || columns <= 0) return text;
  const width = Math.max(columns, MIN_WIDTH);
  return text
    .split('\n')
    .map((line) => breakLine(line, width))
    .join('\n');
}

function breakLine(line: string, width: number): string {
  const isLong = (text: string): boolean => stripVTControlCharacters(text).length > width;
  if (!isLong(line)) return line;
  const own = (line.match(/^ */)?.[0].length ?? 0) + 4;
  const indent = ' '.repeat(Math.min(own, Math.floor(width / 2)));
  const broken: string[] = [];
  let rest = line;
  while (isLong(rest)) {
    const margin = rest.match(/^ *(?:- )?/)?.[0].length ?? 0;
    const space = rest.lastIndexOf(' ', width);
    // Without a space: behind a slash of a path or a comma of a list, so that one sees what was broken.
    const sign = Math.max(rest.lastIndexOf('/', width - 1), rest.lastIndexOf(',', width - 1)) + 1;
    const end = space > margin ? space : sign > margin + 1 ? sign : width;
    broken.push(rest.slice(0, end));
    rest = indent + rest.slice(end).trimStart();
  }
  return [...broken, rest].join('\n');
}

// Warnings that a program gets though it ends at once.

type Warning = Error & { code: string; detail: string };

/** Those that `process.emitWarning` has not emitted yet. */
const pending = new Set<Warning>();

/** One listener for all: a program may leave many threads behind in one turn. */
function emitPending(): void {
  for (const warning of pending) process.emit('warning', warning);
  pending.clear();
}

/**
 * As `process.emitWarning`, which emits the warning in the next tick. A process that an error ends
 * before that tick, or `process.exit()`, emits it while it exits. This matters because the error
 * of a `join()` that nothing catches ends the process at once, and the warning says what that
 * error does not. Both texts are lines: the names in them show control characters as escapes.
 */
export function warn(name: string, code: string, message: string, detail: string): void {
  const warning = Object.assign(new Error(printable(message)), {
    name,
    code,
    detail: printable(detail),
  });
  if (pending.size === 0) process.once('exit', emitPending);
  pending.add(warning);
  // In the tick just before Node emits it, since a listener of the warning may call process.exit().
  process.nextTick(() => {
    pending.delete(warning);
    if (pending.size === 0) process.off('exit', emitPending);
  });
  process.emitWarning(warning);
}
