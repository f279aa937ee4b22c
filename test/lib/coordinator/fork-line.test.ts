/** The line between a process and those that it has forked, when one side breaks it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';

const fixture = (name: string): URL => new URL(`../../fixtures/${name}.mjs`, import.meta.url);
const isWindows = process.platform === 'win32';

describe('a forked process', () => {
  it('that writes damaged messages is a thread that ends, and stops nobody', async () => {
    const coord = new Coordinator();
    const child = coord.fork(fixture('forked-damaged'), [], { name: 'vandal' });
    await coord.join();
    expect(child.exitCode).toBe(0);
    expect(coord.stopRecord).toBeUndefined();
    expect(coord.threads).toEqual([]);
  });

  it('tells its parent of the errors beside the one that has stopped it', async () => {
    const coord = new Coordinator();
    const child = coord.fork(fixture('forked-twice'), [], { silent: true });
    await expect(coord.join()).rejects.toThrow('the first');
    expect(child.exitCode).toBe(1);
    const messages = coord.stopRecord?.suppressed.map(({ error }) => (error as Error).message);
    expect(messages).toEqual(['the second', 'the third']);
  });
});

/** A pipe of which both ends are descriptors of this process. */
function openPipe(): { readEnd: number; writeEnd: number } {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  // Each end is opened only while there is another one.
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, 'w');
  const readEnd = openSync(path, 'r');
  closeSync(first);
  rmSync(folder, { recursive: true });
  return { readEnd, writeEnd };
}

/** A process whose parent this test plays: its coordinator writes `bytes` to the line and ends. */
function played(bytes: Uint8Array): { child: ChildProcess; said: Promise<string> } {
  const { readEnd, writeEnd } = openPipe();
  const { dev, ino } = fstatSync(readEnd, { bigint: true });
  const line = { parent: process.pid, down: 4, pipe: `${dev}:${ino}`, up: 5 };
  const settings = { ...line, coordinator: 'played', types: [], graceMs: 1_000 };
  const child = spawn(process.execPath, [fileURLToPath(fixture('forked-orphan'))], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc', readEnd, 'pipe'],
    env: { ...process.env, ALLSTOP_FORK: JSON.stringify(settings) },
  });
  closeSync(readEnd);
  writeSync(writeEnd, bytes);
  closeSync(writeEnd);
  return { child, said: text(child.stdout as Readable) };
}

// On Windows the line is a named pipe.
describe.skipIf(isWindows)('a forked process is stopped when its parent ends', () => {
  it.each([
    ['before it has said anything', []],
    ['in the middle of a length', [7, 0]],
    ['in the middle of a message', [7, 0, 0, 0, 1]],
    ['after a damaged message', [3, 0, 0, 0, 255, 255, 255]],
  ])('%s', async (_, bytes) => {
    const { child, said } = played(Uint8Array.from(bytes));
    await once(child, 'exit');
    expect(JSON.parse(await said)).toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining(`The parent process ${process.pid} has ended`),
    });
  });
});
