/** Tables of the commands' output, as wide as the terminal at most. */

import { stripVTControlCharacters } from 'node:util';
import Table from 'cli-table3';
import { columns, wrapped } from './text-width.ts';

const GAP = 2;
/** The last column is not made narrower than this. */
const NARROWEST = 20;

/**
 * The text of the last column is wrapped, so that the table fits the terminal (80 for a pipe). Where it
 * does not fit a terminal even so, it becomes a list.
 */
export function tableOf(head: string[], rows: string[][]): string {
  // Without frames, because people paste this text into mails and tickets.
  const empty = Object.fromEntries(
    ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((place) =>
      ['', '-left', '-mid', '-right'].map((part) => [`${place}${part}`, '']),
    ),
  );
  const table = new Table({
    head,
    chars: { ...empty, middle: ' '.repeat(GAP) },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  const others = head.slice(0, -1).map((title, at) => {
    const cells = [title, ...rows.map((row) => row[at] ?? '')];
    return GAP + Math.max(...cells.map((cell) => stripVTControlCharacters(cell).length));
  });
  const room = columns() - others.reduce((sum, width) => sum + width, 0);
  const fitted = rows.map((row) => [
    ...row.slice(0, -1),
    wrapped(row.at(-1) ?? '', Math.max(room, NARROWEST)).join('\n'),
  ]);
  table.push(...fitted);
  const lines = table.toString().split('\n');
  const fits =
    !process.stdout.isTTY ||
    lines.every((line) => stripVTControlCharacters(line).trimEnd().length <= columns());
  return fits ? lines.map((line) => line.trimEnd()).join('\n') : listOf(head, rows);
}

/** The rows below each other, a line or more for each cell: for a terminal narrower than the table. */
function listOf(head: string[], rows: string[][]): string {
  const lines = rows.map(([first = '', ...cells]) => {
    const texts = cells.map((cell, at) => `${head[at + 1] ?? ''} ${cell}`.trim());
    const below = texts.flatMap((text) => wrapped(text, columns() - GAP));
    return [...wrapped(first, columns()), ...below.map((line) => ' '.repeat(GAP) + line)];
  });
  return [head[0] ?? '', ...lines.map((own) => own.join('\n'))].join('\n');
}
