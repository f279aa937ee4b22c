// The example `find-duplicates` in a pseudo-terminal: its table and its progress bar, and what the
// terminal is left like.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../examples/find-duplicates/main.mjs', import.meta.url));
const terminal = fileURLToPath(new URL('../support/terminal.py', import.meta.url));
const NOBODY = process.getuid?.() === 0 ? '65534' : '-1';
const HIDE_CURSOR = '\u001B[?25l';
const SHOW_CURSOR = '\u001B[?25h';

const folder = mkdtempSync(join(tmpdir(), 'allstop-terminal-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inTerminal(columns: number, ...args: string[]): { status: number | null; shown: string } {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const { status, stdout } = spawnSync(
    'python3',
    [terminal, `${columns}`, NOBODY, process.execPath, main, ...args],
    { encoding: 'utf8', env, timeout: 120_000 },
  );
  return { status, shown: stdout };
}

describe.skipIf(process.platform === 'win32')('in a terminal', () => {
  const long = 'a-folder-with-a-name-that-is-long/'.repeat(4);

  beforeAll(() => {
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'tree', long), { recursive: true });
    writeFileSync(join(folder, 'tree', long, 'one'), 'the same');
    writeFileSync(join(folder, 'tree/two'), 'the same');
    mkdirSync(join(folder, 'locked'));
    writeFileSync(join(folder, 'locked/secret'), 'the same');
    writeFileSync(join(folder, 'locked/other'), 'THE SAME');
    chmodSync(join(folder, 'locked/secret'), 0);
  });

  it('--strict with a file that cannot be read ends, with the whole message and the cursor', () => {
    const { status, shown } = inTerminal(80, '--strict', join(folder, 'locked'));
    expect(status).toBe(1);
    expect(stripVTControlCharacters(shown)).toMatch(
      /Failed: \S+ in the thread '.+': .*locked\/secret.*\r\n$/,
    );
    expect(shown.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(shown.lastIndexOf(HIDE_CURSOR));
  });

  it.each([40, 60, 80, 120])('the table fits %i columns', (columns) => {
    const { status, shown } = inTerminal(columns, join(folder, 'tree'));
    expect(status).toBe(0);
    const text = stripVTControlCharacters(shown);
    // The first line follows the progress bar, which the terminal has cleared by then.
    const table = text.split('\r\n').flatMap((line) => line.match(/[│┌├└].*/)?.[0] ?? []);
    expect(table).toHaveLength(6);
    for (const line of table) expect(line.length).toBeLessThanOrEqual(columns);
    expect(text).toContain('/one ');
  });
});
