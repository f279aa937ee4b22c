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
    [40, ['help']],
    [60, ['help', 'worker']],
    [80, ['help', 'worker']],
    [80, ['help', 'check-addon']],
    [60, ['doctor', '--sever']],
    [40, ['doctor']],
    [40, ['doctor', '--servers', SERVERS]],
    [80, ['doctor', '--servers', SERVERS]],
    [200, ['doctor', '--verbose']],
  ])('of %i columns, allstop %j fits', (columns, args) => {
    const lines = linesIn(columns, ...args);
    expect(lines.length).toBeGreaterThan(4);
    expect(widest(lines)).toBeLessThanOrEqual(columns);
  });

  it.each([
    [39, ['doctor']],
    [20, ['doctor', '--servers', SERVERS]],
  ])('of %i columns, allstop %j fits 40', (columns, args) => {
    expect(widest(linesIn(columns, ...args))).toBeLessThanOrEqual(40);
  });

  it('the help of a wrong usage fits the terminal of stderr, though stdout is a file', () => {
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
    expect(lines[0]).toMatch(/^Usage: allstop worker --module FILE/);
    expect(widest(lines)).toBeLessThanOrEqual(50);
  });

  it('a table that does not fit is a list, with the same words', () => {
    const [narrow, wide] = [60, 200].map((columns) =>
      linesIn(columns, 'doctor', '--servers', SERVERS).join('\n'),
    );
    expect(wide).toMatch(/^server +dns +tcp +nats +tls +auth +jetstream$/m);
    expect(narrow).toMatch(/^server\n127\.0\.0\.1:9\n {2}dns ok\n {2}tcp NOT OK\n {2}nats -$/m);
  });

  it('an example that is too long goes on after a backslash', () => {
    const lines = linesIn(60, 'help', 'worker');
    expect(lines.join('\n').replaceAll(/ \\\n +/g, ' ')).toContain(
      '\n  npx allstop worker --module dist/tasks.js --servers nats://127.0.0.1:4222 --cluster main\n',
    );
  });
});
