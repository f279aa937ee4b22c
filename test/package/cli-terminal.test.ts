// What the command prints in a pseudo-terminal: nothing is wider than the terminal.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const program = join(root, 'dist/cli/main.js');
const terminal = join(root, 'test/support/terminal.py');

/** The lines that a terminal with `columns` shows, without colours. */
function linesIn(columns: number, ...args: string[]): string[] {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const { stdout } = spawnSync(
    'python3',
    [terminal, `${columns}`, '-1', process.execPath, program, ...args],
    { encoding: 'utf8', env, timeout: 120_000 },
  );
  return stripVTControlCharacters(stdout).split('\r\n');
}

const widest = (lines: readonly string[]): number => Math.max(...lines.map(({ length }) => length));

/** Two servers that do not exist, one of them with a long name. */
const SERVERS = `127.0.0.1:9,${'a-very-long-name.'.repeat(3)}invalid:4222`;

describe.skipIf(process.platform === 'win32')('in a terminal', () => {
  it.each([
    [40, ['help', 'worker']],
    [40, ['help', 'new-addon']],
    [40, ['help', 'check-addon']],
    [40, ['help', 'doctor']],
    [80, ['help', 'worker']],
    [40, ['doctor', '--servers', SERVERS]],
  ])('of %i columns, allstop %j fits', (columns, args) => {
    const lines = linesIn(columns, ...args);
    expect(lines.length).toBeGreaterThan(4);
    expect(widest(lines)).toBeLessThanOrEqual(columns);
  });

  it('what a wrong usage prints fits the terminal of stderr, though stdout is a file', () => {
    const { stdout } = spawnSync(
      'python3',
      [
        terminal,
        '50',
        '-1',
        'sh',
        '-c',
        '"$0" "$@" > /dev/null',
        process.execPath,
        program,
        'worker',
      ],
      { encoding: 'utf8', timeout: 120_000 },
    );
    const lines = stdout.split('\r\n');
    expect(stdout).toMatch(/^Usage: allstop worker --module FILE/m);
    expect(widest(lines)).toBeLessThanOrEqual(50);
  });
});
