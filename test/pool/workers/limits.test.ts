/** A minute in which the system has no room for all workers, which die all the time. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const program = fileURLToPath(new URL('../../fixtures/pool-under-limits.mjs', import.meta.url));
const MINUTE_MS = 60_000;
/** A user of whom the system has no other process. */
const USER = 61_234;
const asUser = [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'];
const isRoot = process.getuid?.() === 0;

/** Starts the program, which has said 'ready'. `next` gives its next line. */
async function start(...args: string[]) {
  const node = [process.execPath, program, ...args];
  const [command, ...own] = isRoot ? ['setpriv', ...asUser, ...node] : node;
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(command as string, own, { stdio: ['pipe', 'pipe', 'inherit'], env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => (await lines.next()).value as string;
  expect(await next()).toBe('ready');
  return { child, next };
}

/** The program cannot start a thread any more. @returns what lets it */
function limitThreads(pid: number): () => void {
  const of = ['-L', '-u', String(USER), '-o', 'lwp='];
  const threads = execFileSync('ps', of, { encoding: 'utf8' }).trim().split('\n').length;
  const set = (value: string): unknown =>
    execFileSync('setpriv', [...asUser, 'prlimit', `--pid=${pid}`, `--nproc=${value}:`]);
  expect(threads).toBeGreaterThan(10);
  set(String(threads - 2));
  return () => void set('2000');
}

/** Runs the program; `limit` is called with its pid, and then what `limit` gives. */
async function underLimit(
  isolation: string,
  file: string | undefined,
  limit: (pid: number) => () => void,
): Promise<unknown> {
  const { child, next } = await start(isolation, ...(file === undefined ? [] : [file]));
  const lift = limit(child.pid as number);
  await setTimeout(MINUTE_MS);
  lift();
  child.stdin.write('over\n');
  const result: unknown = JSON.parse(await next());
  child.stdin.end();
  expect(await once(child, 'exit')).toEqual([0, null]);
  return result;
}

function expectAll(result: unknown): void {
  const { calls, ...others } = result as Record<string, number>;
  expect(others).toMatchObject({ right: calls, errors: [], ready: 4 });
  expect(others['failedStarts']).toBeGreaterThan(0);
}

describe.skipIf(process.platform !== 'linux')(
  'workers that die for a minute',
  {
    tags: 'long',
    timeout: 300_000,
  },
  () => {
    it.skipIf(!isRoot).each(['thread', 'process'])(
      'with too few threads: %s',
      async (isolation) => {
        expectAll(await underLimit(isolation, undefined, limitThreads));
      },
    );

    it('with too little memory for a process in two', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'allstop-'));
      chmodSync(folder, 0o777);
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const file = join(folder, 'limited');
      const result = await underLimit('process', file, () => {
        writeFileSync(file, '');
        return () => rmSync(file);
      });
      expectAll(result);
    });
  },
);

describe.skipIf(process.platform !== 'linux' || !isRoot)('a pool that begins', () => {
  it.each(['thread', 'process'])(
    'with too few threads waits for them: %s',
    { tags: 'long', timeout: 300_000 },
    async (isolation) => {
      const { child, next } = await start(isolation, 'late');
      const lift = limitThreads(child.pid as number);
      child.stdin.write('begin\n');
      expect(await next()).toBe('lost');
      lift();
      expect(await next()).toBe('3');
      child.stdin.end();
      expect(await once(child, 'exit')).toEqual([0, null]);
    },
  );
});
