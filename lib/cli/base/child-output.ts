/** What a child process of a command tells its parent by its output, beside what others print there. */

import { writeSync } from 'node:fs';
import { attempt, codeOf } from '../../base/thrown-value.ts';

/** Begins each line that is meant for the parent. */
const MARK = 'allstop-child ';

const aMoment = new Int32Array(new SharedArrayBuffer(4));

/**
 * Tells the parent by stdout. Synchronous, so that what was told before a crash arrives; on a line of
 * its own, since an addon or a script may print, too, and may have filled the pipe (EAGAIN).
 */
export function tellParent(told: object): void {
  const bytes = Buffer.from(`\n${MARK}${JSON.stringify(told)}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN') throw error;
      Atomics.wait(aMoment, 0, 0, 1);
    }
  }
}

/** All that a child has told, as one object: of a field that was told twice, the last. */
export function toldIn(stdout: string): object {
  const lines = stdout.split('\n').filter((line) => line.startsWith(MARK));
  // The last line of a process that was killed may have no end.
  return Object.assign(
    {},
    ...lines.map((line) => attempt(() => JSON.parse(line.slice(MARK.length)))),
  );
}

/** The line of stderr that tells most about a crash. */
export function tellingLine(stderr: string): string | undefined {
  const lines = stderr.split('\n').filter((line) => /\w/.test(line) && !line.startsWith('(node:'));
  const line =
    lines.find((each) => /^\S*Error\b.*:/.test(each)) ?? // not a line of the source that Node quotes
    lines.find((each) => /error|fatal|assert|terminate|panic/i.test(each)) ??
    lines[0];
  return line?.trim().replaceAll(/\p{Cc}+/gu, ' ');
}
