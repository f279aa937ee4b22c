// The example `feed` as users run it: a child process, a real file, real signals.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Program } from '../support/program.ts';

const main = fileURLToPath(new URL('../../examples/feed/main.mjs', import.meta.url));
const terminal = fileURLToPath(new URL('../support/terminal.py', import.meta.url));
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'feed-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const start = (...args: string[]): Program => new Program(main, args);

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('writes until %s, loses nothing, and exits with %i', async (signal, code) => {
  const file = join(directory, signal);
  const hasLines = new Promise<void>((resolve) => {
    const watcher = watch(directory, (_, name) => {
      if (name !== signal || linesOf(file).length < 3) return;
      watcher.close();
      resolve();
    });
  });
  const feed = start('--interval', '5', file);
  await hasLines;
  feed.kill(signal);
  const { stdout, stderr, code: exitCode } = await feed.ended;
  expect(exitCode).toBe(code);
  const samples = linesOf(file).map((line) => JSON.parse(line) as { at: string; rss: number });
  expect(stdout).toBe(`Samples written: ${samples.length}\n`);
  // What it shows meanwhile, and last: all that was sampled was written.
  const shown = stderr.split('\n').slice(0, -1);
  for (const line of shown) expect(line).toMatch(/^sampled \d+, written \d+, queue \d+$/);
  const all = samples.length;
  expect(shown.at(-1)).toBe(`sampled ${all}, written ${all}, queue 0`);
  const times = samples.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  expect(samples.every(({ rss }) => rss > 0)).toBe(true);
});

it('shows while it runs what it has sampled and written', async () => {
  const feed = start('--interval', '5', join(directory, 'shown'));
  await feed.writes(/^sampled [1-9]\d*, written [1-9]\d*, queue \d+$/m, 'stderr');
  feed.kill('SIGINT');
  await feed.ended;
});

it.skipIf(process.platform === 'win32')('shows it on one line of a terminal', async () => {
  const columns = 40;
  const args = [terminal, `${columns}`, '-1', process.execPath, main, '--interval', '5'];
  const screen = spawn('python3', [...args, join(directory, 'terminal')]);
  let shown = '';
  const drawn = /\rsampled [1-9]\d*, written [1-9]\d*, queue \d+/;
  for await (const text of screen.stdout.setEncoding('utf8')) {
    // The terminal goes back to the beginning of its line before each drawing.
    shown += (text as string).replaceAll('\u001b[1G', '\r');
    if (drawn.test(shown)) break;
  }
  screen.kill('SIGKILL'); // the example ends by SIGHUP, with its terminal
  await once(screen, 'close');
  const lines = stripVTControlCharacters(shown).split(/[\r\n]/);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns);
  expect(shown).toMatch(drawn);
  expect(shown).not.toContain('\n');
});

it('says what is wrong', async () => {
  const nowhere = await start(join(directory, 'no', 'such', 'file')).ended;
  expect(nowhere).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^Failed: ENOENT/),
  });
  for (const args of [[], ['a', 'b'], ['--interval', 'x', 'a'], ['--nothing']]) {
    const { code, stderr } = await start(...args).ended;
    expect([code, stderr.includes('Usage: ')]).toEqual([2, true]);
  }
  expect(await start('--help').ended).toMatchObject({ code: 0, stderr: '' });
});
