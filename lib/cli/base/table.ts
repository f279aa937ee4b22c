/** Tables of the commands' output. */

import Table from 'cli-table3';

export function tableOf(head: string[], rows: string[][]): string {
  // Without frames, because people paste this text into mails and tickets.
  const empty = Object.fromEntries(
    ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((place) =>
      ['', '-left', '-mid', '-right'].map((part) => [`${place}${part}`, '']),
    ),
  );
  const table = new Table({
    head,
    chars: { ...empty, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  table.push(...rows);
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}
