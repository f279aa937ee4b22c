// The example `feed` as users run it: a child process, a real file, real signals.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../examples/feed/main.mjs', import.meta.url));
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'feed-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function start(...args: string[]): {
  kill(signal: NodeJS.Signals): void;
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
} {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [main, ...args], { env });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { kill: (signal) => void child.kill(signal), ended };
}

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
  const { stdout, ...rest } = await feed.ended;
  expect(rest).toEqual({ code, stderr: '' });
  const samples = linesOf(file).map((line) => JSON.parse(line) as { at: string; rss: number });
  expect(stdout).toBe(`Samples written: ${samples.length}\n`);
  const times = samples.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  expect(samples.every(({ rss }) => rss > 0)).toBe(true);
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
