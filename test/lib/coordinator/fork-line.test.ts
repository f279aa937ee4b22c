/** The line between a process and those that it has forked, when one side breaks it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
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

/** A process whose parent this test plays: its coordinator, and the parent's end of its line. */
function played(): { child: ReturnType<typeof spawn>; down: Writable; said: Promise<string> } {
  const settings = { parent: process.pid, coordinator: 'played', types: [], graceMs: 1_000 };
  const child = spawn(process.execPath, [fileURLToPath(fixture('forked-orphan'))], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc', 'pipe', 'pipe'],
    env: { ...process.env, ALLSTOP_FORK: JSON.stringify({ ...settings, down: 4, up: 5 }) },
  });
  return { child, down: child.stdio[4] as Writable, said: text(child.stdout as Readable) };
}

// On Windows the line is a named pipe.
describe.skipIf(isWindows)('a forked process is stopped when its parent ends', () => {
  it.each([
    ['before it has said anything', []],
    ['in the middle of a length', [7, 0]],
    ['in the middle of a message', [7, 0, 0, 0, 1]],
    ['after a damaged message', [3, 0, 0, 0, 255, 255, 255]],
  ])('%s', async (_, bytes) => {
    const { child, down, said } = played();
    down.end(Uint8Array.from(bytes));
    await once(child, 'exit');
    expect(JSON.parse(await said)).toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining(`The parent process ${process.pid} has ended`),
    });
  });
});
