/** What functions print reaches the reader of the program, however their workers and it end. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('../../fixtures/printing-program.mjs', import.meta.url));
const WORKERS = 2;
const LINES = 1_000;

/** Ways in which the last lines may be lost at the end of a program: a program for each. */
const LAST = [
  ['that closes its pool', 'close'],
  ['that closes nothing', 'nothing'],
  ['that ends by process.exit()', 'exit'],
] as const;
/** What one program does with one pool after the other. */
const ANY = [
  ['that closes its pool with drainMs', 'drain'],
  ['that replaces its workers', 'recycle'],
  ['whose functions print asynchronously, to stderr', 'later'],
  ['whose functions await drain', 'heeds'],
  ['whose functions end their workers by process.exit()', 'exits'],
  ['whose functions are ended by force at their deadline', 'hangs'],
  ['whose functions are cancelled by close', 'waits'],
] as const;

type Isolation = 'thread' | 'process';

const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** `spawn` gives the program sockets: they take some hundred small writes, and no more. */
function startProgram(isolation: Isolation, ways: string[], lines = LINES) {
  const args = [program, isolation, String(lines), ...ways];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  const text = { stdout: '', stderr: '' };
  const read = (): unknown => child.stdout.on('data', (more) => (text.stdout += more));
  if (!ways[0]?.startsWith('unread')) read();
  child.stderr.on('data', (more) => (text.stderr += more));
  const printed = (way: string, stream: keyof typeof text = 'stdout'): string[] =>
    text[stream].split('\n').filter((line) => line.startsWith(`${way} `));
  return { child, read, text, printed, closed: once(child, 'close') };
}

/** These run beside the other programs. */
const together = {} as Record<Isolation, ReturnType<typeof startProgram>>;
beforeAll(() => {
  const ways = [...ANY.map(([, way]) => way), 'teardown', 'dies'];
  for (const isolation of ['thread', 'process'] as const) {
    together[isolation] = startProgram(isolation, ways);
  }
});

describe.each(['thread', 'process'] as const)('workers as %s', (isolation) => {
  const start = (way: string, lines?: number) => startProgram(isolation, [way], lines);
  const wanted = (...names: [who: string, many: number][]): string[] =>
    names.flatMap(([who, many]) => Array.from({ length: many }, (_, line) => `${who} ${line}`));
  const ofAll = (way: string, many = LINES): string[] =>
    wanted([`${way} w0`, many], [`${way} w1`, many]).toSorted();

  it.each(LAST)('a program loses no line %s', async (_, way) => {
    const { closed, printed } = start(way);
    const [code] = await closed;
    expect(printed(way).toSorted()).toEqual(ofAll(way));
    expect(code).toBe(0);
  });

  describe('one pool after the other', () => {
    const started = () => together[isolation];
    beforeAll(() => started().closed);

    it.each(ANY)('a program loses no line %s', (_, way) => {
      const lines = started().printed(way, way === 'later' ? 'stderr' : 'stdout');
      expect(lines.toSorted()).toEqual(ofAll(way));
      expect(started().child.exitCode).toBe(0);
    });

    it('loses no line of a worker that dies of an error, and shows the error', () => {
      expect(started().text.stderr.match(/^.*Error: dies$/gm)).toHaveLength(WORKERS);
      expect(started().printed('dies').toSorted()).toEqual(ofAll('dies'));
    });

    it('loses no line of teardown', () => {
      const byes = Array.from({ length: WORKERS }, () => ['bye', 100] as [string, number]);
      expect(started().printed('teardown').toSorted()).toEqual(ofAll('teardown'));
      expect(started().printed('bye').toSorted()).toEqual(wanted(...byes).toSorted());
    });
  });

  // A process of a worker waits for the reader itself.
  it.runIf(isolation === 'thread')('process.exit() writes what nobody has read yet', async () => {
    const many = 20 * LINES; // more than a pipe takes
    const way = 'unread exit';
    const { child, closed, read, printed } = start(way, many);
    const [exits] = await once(child.stderr, 'data');
    expect(String(exits)).toBe('exits\n');
    read();
    await closed;
    expect(printed(way).toSorted()).toEqual(ofAll(way, many));
  });

  it('has all lines of a worker that resize has ended when resize resolves', async () => {
    const { child, closed, printed } = start('resize');
    const [resized] = await once(child.stderr, 'data');
    expect(String(resized)).toBe('resized\n');
    child.kill('SIGKILL');
    await closed;
    expect(printed('resize').toSorted()).toEqual(ofAll('resize'));
  });

  it.runIf(isolation === 'thread')('close does not wait for ever for a reader', async () => {
    const { child, closed, read, printed } = start('unread');
    const [said] = await once(child.stderr, 'data');
    expect(String(said)).toBe('closed\n');
    read();
    await closed;
    expect(printed('unread').toSorted()).toEqual(ofAll('unread'));
  });
});
