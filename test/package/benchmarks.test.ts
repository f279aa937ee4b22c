/** The page of the benchmarks, made from given values, and the command that makes it. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;

type Row = { name: string; what: string; runner: string; peer?: string; limit?: string };
type Result = {
  ours: number[];
  peer?: number[];
  peers?: Record<string, number[]>;
  sizes?: [number, number[]][];
};
type Results = Map<string, Result | { failed: string }>;
type Section = { rows: Row[] };

const load = async <T>(path: string): Promise<T> => (await import(join(root, path))) as T;
const { ROWS, SECTIONS } = await load<{ ROWS: Row[]; SECTIONS: Section[] }>('bench/rows.mjs');
const { charts } = await load<{
  charts: (rows: Row[], results: Results) => Promise<Map<string, string>>;
}>('bench/report/charts.mjs');
const { page } = await load<{
  page: (sections: Section[], results: Results, run: object) => string;
}>('bench/report/page.mjs');

const environment = {
  date: '2026-11-23',
  commit: 'commit 0123456789ab',
  machine: 'a machine',
  system: 'a system',
  node: 'Node',
  compiler: 'a compiler',
  priority: 0,
};

async function pageOf(results: Results): Promise<string> {
  const drawn = await charts(ROWS, results);
  return page(SECTIONS, results, { environment, minutes: 1, use: 0, folder: 'benchmarks', drawn });
}

const lineOf = (text: string, what: string): string =>
  text.split('\n').findLast((line) => line.startsWith(`| ${what}`)) ?? '';

describe('the page of the benchmarks', () => {
  it('says of each row whether its goal is met, and argues each that is missed', async () => {
    const text = await pageOf(
      new Map<string, Result>([
        ['wake/workers', { ours: [10, 10, 10], peer: [10, 10, 10] }],
        ['wake/promise', { ours: [20, 20, 20], peer: [10, 10, 10] }],
        ['spawn', { ours: [10, 12, 13], peer: [10, 10, 10] }],
        ['join/task', { ours: [1_001, 1_001, 1_001] }],
      ]),
    );
    expect(text).toContain('at commit 0123456789ab');
    expect(lineOf(text, 'JS request → 8 workers')).toContain('| ≤ 1.1 × | yes |');
    expect(lineOf(text, 'native request → JS promise')).toContain('| 2.00 × | ≤ 1.2 × | **no** |');
    expect(lineOf(text, '`spawn()`')).toContain('| within the spread |');
    expect(lineOf(text, 'last task')).toContain('| ≤ 1,000 µs | **no** |');
    const missed = text.slice(
      text.indexOf('## Where a goal is missed'),
      text.indexOf('## A check'),
    );
    expect(missed).toContain('Both take the same way into the event loop');
    expect(missed).not.toContain('JS request → 8 workers');
  });

  it('compares with the best of several peers', async () => {
    const peers = { Piscina: [30, 30], tinypool: [10, 10] };
    const text = await pageOf(new Map([['pool/closures', { ours: [5, 5], peers }]]));
    const line = lineOf(text, '2 workers: a trivial closure');
    expect(line).toContain('tinypool: 10.0 µs; Piscina: 30.0 µs | 0.500 × | ≤ 0.67 × | yes |');
  });

  it('names what was not measured, and why', async () => {
    const text = await pageOf(new Map([['spawn', { failed: 'no end after 300 s' }]]));
    expect(lineOf(text, '`spawn()`')).toContain('*not measured: no end after 300 s*');
    expect(text).toMatch(/\*\*0 of \d+ goals are met; \d+ not measured\.\*\*/);
  });

  it('has pictures for a light and for a dark page, without what was not measured', async () => {
    const sizes: [number, number[]][] = [
      [100, [1, 1]],
      [200, [2, 2]],
    ];
    const drawn = await charts(
      ROWS,
      new Map([
        ['spawn', { ours: [10], peer: [10] }],
        ['scale/thread', { ours: [2], peer: [1], sizes }],
      ]),
    );
    expect([...drawn.keys()]).toEqual(['ratios-light', 'ratios-dark', 'sizes-light', 'sizes-dark']);
    expect(drawn.get('ratios-dark')).toMatch(/^<svg.*spawn\(\) → the worker runs/s);
    expect(drawn.get('sizes-light')).toContain('a registered promise');
    expect([...drawn.values()].join('')).not.toContain('NaN');
  });
});

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
