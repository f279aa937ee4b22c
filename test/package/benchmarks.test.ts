/** The command that makes the page of the benchmarks. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const { ROWS } = (await import(join(root, 'bench/rows.mjs'))) as { ROWS: { name: string }[] };

describe('npm run bench', () => {
  const bench = (...args: string[]): ReturnType<typeof spawnSync> =>
    spawnSync(process.execPath, ['bench/run.mjs', ...args], { cwd: root, encoding: 'utf8' });

  it('lists all rows', () => {
    const { stdout, status } = bench('--list');
    expect(status).toBe(0);
    expect(String(stdout).trim().split('\n')).toHaveLength(ROWS.length);
    expect(new Set(ROWS.map(({ name }) => name)).size).toBe(ROWS.length);
  });

  it.each([
    [['--row', 'nothing'], 'There is no row nothing'],
    [['--rows'], "Unknown option '--rows'"],
    [['--quick', '--output', 'page.md'], '--output writes the whole page'],
  ])('refuses %j', (args, message) => {
    const { stderr, status } = bench(...args);
    expect(String(stderr)).toContain(message);
    expect(status).toBe(2);
  });
});
