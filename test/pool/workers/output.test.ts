/** What functions print reaches the reader of the program, however their workers and it end. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const program = fileURLToPath(new URL('../../fixtures/printing-program.mjs', import.meta.url));
const WORKERS = 2;
const LINES = 1_000;

describe.each(['thread', 'process'] as const)('workers as %s', (isolation) => {
  /** `spawn` gives the program sockets: they take some hundred small writes, and no more. */
  function start(way: string, lines = LINES) {
    const args = [program, isolation, way, String(lines)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let text = '';
    const read = (): unknown => child.stdout?.on('data', (more) => (text += more));
    if (!way.startsWith('unread')) read();
    if (way === 'later') child.stderr?.on('data', (more) => (text += more));
    return { child, read, printed: () => text.split('\n').slice(0, -1) };
  }
  const wanted = (...names: [who: string, many: number][]): string[] =>
    names.flatMap(([who, many]) => Array.from({ length: many }, (_, line) => `${who} ${line}`));
  const ofAll = wanted(['w0', LINES], ['w1', LINES]).toSorted();

  it.each([
    ['that closes its pool', 'close'],
    ['that closes its pool with drainMs', 'drain'],
    ['that replaces its workers', 'recycle'],
    ['that closes nothing', 'nothing'],
    ['that ends by process.exit()', 'exit'],
    ['whose functions print asynchronously, to stderr', 'later'],
    ['whose functions await drain', 'heeds'],
    ['whose functions end their workers by process.exit()', 'exits'],
    ['whose functions are ended by force at their deadline', 'spins'],
    ['whose functions are cancelled by close', 'waits'],
  ])('a program loses no line %s', async (_, way) => {
    const { child, printed } = start(way);
    const [code] = await once(child, 'close');
    expect(printed().toSorted()).toEqual(ofAll);
    expect(code).toBe(0);
  });

  // A process of a worker waits for the reader itself.
  it.runIf(isolation === 'thread')('process.exit() writes what nobody has read yet', async () => {
    const many = 20 * LINES; // more than a pipe takes
    const { child, read, printed } = start('unread exit', many);
    const [exits] = await once(child.stderr as NodeJS.ReadableStream, 'data');
    expect(String(exits)).toBe('exits\n');
    read();
    await once(child, 'close');
    expect(printed().toSorted()).toEqual(wanted(['w0', many], ['w1', many]).toSorted());
  });

  it('loses no line of a worker that dies of an error, and shows the error', async () => {
    const { child, printed } = start('dies');
    let shown = '';
    child.stderr?.on('data', (more) => (shown += more));
    await once(child, 'close');
    expect(shown.match(/^.*Error: dies$/gm)).toHaveLength(WORKERS);
    expect(
      printed()
        .filter((line) => line.startsWith('w'))
        .toSorted(),
    ).toEqual(ofAll);
  });

  it('loses no line of teardown', async () => {
    const { child, printed } = start('teardown');
    await once(child, 'close');
    const byes = Array.from({ length: WORKERS }, () => ['bye', 100] as [string, number]);
    expect(printed().toSorted()).toEqual([...ofAll, ...wanted(...byes)].toSorted());
  });

  it('has all lines of a worker that resize has ended when resize resolves', async () => {
    const { child, printed } = start('resize');
    const [resized] = await once(child.stderr as NodeJS.ReadableStream, 'data');
    expect(String(resized)).toBe('resized\n');
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(printed().toSorted()).toEqual(ofAll);
  });

  it.runIf(isolation === 'thread')('close does not wait for ever for a reader', async () => {
    const { child, read, printed } = start('unread');
    const [closed] = await once(child.stderr as NodeJS.ReadableStream, 'data');
    expect(String(closed)).toBe('closed\n');
    read();
    await once(child, 'close');
    expect(printed().toSorted()).toEqual(ofAll);
  });
});
