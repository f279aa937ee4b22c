/** Tables of the commands' output. */

import { stripVTControlCharacters } from 'node:util';
import { columns } from './command.ts';

const GAP = '  ';
const widthOf = (cell = ''): number => stripVTControlCharacters(cell).length;

/**
 * Without frames, because people paste this text into mails and tickets. Where the columns, without
 * the last one, leave no room in the terminal, the table becomes a list: a line for each cell. Long
 * lines are broken by who prints them (`fitTerminal`).
 */
export function tableOf(head: string[], rows: string[][]): string {
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((row) => widthOf(row[at]))));
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - widthOf(cell)))
      .join(GAP)
      .trimEnd(),
  );
  const indent = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  const fits = indent + Math.min(widths.at(-1) ?? 0, 20) <= columns();
  return fits || !process.stdout.isTTY ? lines.join('\n') : listOf(head, rows);
}

function listOf(head: string[], rows: string[][]): string {
  const lines = rows.map(([first = '', ...cells]) => [
    first,
    ...cells.map((cell, at) => GAP + `${head[at + 1] ?? ''} ${cell}`.trim()),
  ]);
  return [head[0] ?? '', ...lines.flat()].join('\n');
}
