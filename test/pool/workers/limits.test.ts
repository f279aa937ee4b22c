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

/** Runs the program; `limit` is called with its pid, and then what `limit` gives. */
async function underLimit(
  isolation: string,
  file: string | undefined,
  limit: (pid: number) => () => void,
): Promise<unknown> {
  const args = [program, isolation, ...(file === undefined ? [] : [file])];
  const node = [process.execPath, ...args];
  const [command, ...own] = isRoot ? ['setpriv', ...asUser, ...node] : node;
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(command as string, own, { stdio: ['pipe', 'pipe', 'inherit'], env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe('ready');
  const lift = limit(child.pid as number);
  await setTimeout(MINUTE_MS);
  lift();
  child.stdin.write('over\n');
  const result: unknown = JSON.parse((await lines.next()).value as string);
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
        const result = await underLimit(isolation, undefined, (pid) => {
          const of = ['-L', '-u', String(USER), '-o', 'lwp='];
          const threads = execFileSync('ps', of, { encoding: 'utf8' }).trim().split('\n').length;
          const set = (value: string): unknown =>
            execFileSync('setpriv', [...asUser, 'prlimit', `--pid=${pid}`, `--nproc=${value}:`]);
          expect(threads).toBeGreaterThan(10);
          set(String(threads - 2));
          return () => void set('2000');
        });
        expectAll(result);
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
