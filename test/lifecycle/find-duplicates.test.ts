// The example `find-duplicates` as users run it: child processes, real files, real signals.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runScript } from '../support/run-script.ts';

const main = fileURLToPath(new URL('../../examples/find-duplicates/main.mjs', import.meta.url));
const terminal = fileURLToPath(new URL('../support/terminal.py', import.meta.url));

type Ended = {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
};

class Example {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';

  constructor(args: string[], options: { uid?: number; gid?: number } = {}) {
    // Without the execArgv of the test runner.
    const { NODE_OPTIONS: _, ...env } = process.env;
    this.child = spawn(process.execPath, [main, ...args], { env, ...options });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', (code, signal) => {
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  /** Resolves when stderr matches `pattern`; rejects if the process ends before that. */
  async writes(pattern: RegExp): Promise<void> {
    const seen = new Promise<void>((resolve) => {
      this.child.stderr?.on('data', () => {
        if (pattern.test(this.#stderr)) resolve();
      });
    });
    const over = this.ended.then((ended) => {
      throw new Error(`It ended without writing ${pattern}: ${JSON.stringify(ended)}`);
    });
    await Promise.race([seen, over]);
  }
}

const run = (...args: string[]): Promise<Ended> => new Example(args).ended;

/** What a terminal of `columns` shows at the end, without colours and the progress. */
function linesIn(columns: number, ...args: string[]): string[] {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const { stdout } = spawnSync(
    'python3',
    [terminal, `${columns}`, '-1', process.execPath, main, ...args],
    { encoding: 'utf8', env },
  );
  // The progress bar is cleared when the scan has ended.
  return stripVTControlCharacters(stdout.split('\u001b[2K').at(-1) as string)
    .trim()
    .split('\r\n');
}

const widest = (lines: readonly string[]): number => Math.max(...lines.map(({ length }) => length));

let root: string;

/** A folder of its own for a test, with these files. */
function tree(name: string, files: Record<string, string | Buffer>): string {
  const directory = join(root, name);
  mkdirSync(directory);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  return directory;
}

beforeAll(() => {
  root = mkdtempSync(join(realpathSync(tmpdir()), 'find-duplicates-'));
  chmodSync(root, 0o755);
});

afterAll(() => {
  // Not rmSync: the paths below `deep` are longer than it can name.
  execFileSync('rm', ['-rf', root]);
});

describe('what it finds', () => {
  it('is every group of files with the same bytes, the worst first, and nothing else', async () => {
    const large = Buffer.alloc(300_000, 'x');
    const almost = Buffer.from(large);
    almost[almost.length - 1] = 0;
    const directory = tree('known', {
      'large/one': large,
      'large/two': large,
      'large/almost': almost,
      a: 'same',
      'sub/b': 'same',
      'sub/deeper/c': 'same',
      'sub/d': 'diff',
      'empty/one': '',
      'empty/two': '',
      linked: 'several names, one copy',
      unique: 'of a size that no other has',
    });
    linkSync(join(directory, 'linked'), join(directory, 'another-name'));
    symlinkSync(join(directory, 'a'), join(directory, 'symbolic'));
    symlinkSync('..', join(directory, 'sub/loop'));

    const { code, stdout } = await run('--json', directory);
    expect(JSON.parse(stdout)).toEqual({
      directory,
      files: 12, // the two names of one file, but no symbolic links
      wastedBytes: 300_000 + 2 * 4,
      groups: [
        { size: 300_000, wasted: 300_000, paths: ['large/one', 'large/two'] },
        { size: 4, wasted: 8, paths: ['a', 'sub/b', 'sub/deeper/c'] },
      ],
      unreadable: [],
    });
    expect(code).toBe(0);
  });

  it('is shown as a table, without colours where there is no terminal', async () => {
    const directory = tree('table', { a: 'same', b: 'same', c: 'same', d: 'same' });
    const { code, stdout } = await run(directory);
    expect(stdout).toMatch(/│ +wasted │ copies │ size │ files +│/);
    expect(stdout).toMatch(/│ +12 B │ +4 │ +4 B │ a +│/);
    expect(stdout).toMatch(/│ and 1 more │/);
    expect(stdout).toContain('Groups of duplicates: 1, among 4 files. Wasted: 12 B.\n');
    expect(stdout).not.toContain('\u001b');
    expect(code).toBe(0);
  });

  it.skipIf(process.platform === 'win32')('fits a terminal of 40 columns', { tags: 'long' }, () => {
    const long = 'a-folder-with-a-long-name/'.repeat(3);
    const files = Object.fromEntries(
      Array.from({ length: 24 }, (_, i) => [`${long}${i}`, 'x'.repeat(1000 + Math.floor(i / 2))]),
    );
    const directory = tree('narrow', files);
    const table = linesIn(40, directory);
    expect(widest(table)).toBe(40);
    expect(table.join(' ')).toContain(
      'Not shown: 2 smaller groups. Groups of duplicates: 12, among 24 files. Wasted: 12.1 KB.',
    );
    const usage = linesIn(40, '--help');
    expect(usage.length).toBeGreaterThan(4);
    expect(widest(usage)).toBeLessThanOrEqual(40);
  });

  it('may be nothing', async () => {
    const directory = tree('nothing', {});
    const { code, stdout } = await run(directory);
    expect(stdout).toBe('Groups of duplicates: 0, among 0 files. Wasted: 0 B.\n');
    expect(code).toBe(0);
  });
});

// Hashing 2 TB takes minutes at the least, so a signal surely comes in the middle.
function endless(name: string): string {
  const directory = tree(name, { one: '', two: '' });
  for (const file of ['one', 'two']) truncateSync(join(directory, file), 1e12);
  return directory;
}

describe.each([
  ['SIGINT', 130, []],
  ['SIGTERM', 143, ['long']],
] as const)('%s in the middle', (signal, exitCode, tags) => {
  it(`stops all threads, says why, and exits with ${exitCode}`, { tags: [...tags] }, async () => {
    const example = new Example([endless(signal)]);
    await example.writes(/hashed [1-9]/);
    example.child.kill(signal);
    const ended = await example.ended;
    expect(ended).toMatchObject({ code: exitCode, signal: null, stdout: '' });
    expect(ended.stderr).toContain(`the process received ${signal}`);
    expect(ended.stderr).not.toContain('Still running');
    for (const thread of ['walker (native', 'hasher 1 (native', 'verifier 2 (worker']) {
      expect(ended.stderr).toContain(thread);
    }
  });
});

describe('what cannot be read', () => {
  // No process, not even root's, can open a path longer than PATH_MAX.
  function tooDeep(name: string): string {
    const directory = tree(name, { a: 'same', b: 'same' });
    const step = 'fs.mkdirSync(name); process.chdir(name);'; // no path is longer than a name
    const script = `const name = 'd'.repeat(250); for (let i = 0; i < 20; ++i) { ${step} }`;
    execFileSync(process.execPath, ['--eval', script], { cwd: directory });
    return directory;
  }

  it('is counted', async () => {
    const { code, stdout } = await run(tooDeep('deep'));
    expect(stdout).toMatch(/│ +4 B │ +2 │ +4 B │ a +│/);
    expect(stdout).toMatch(/\nNot readable: 1, the first: cannot stat .*: File name too long\n$/);
    expect(code).toBe(0);
  });

  it('is a C++ exception with --strict', async () => {
    const { code, stdout, stderr } = await run('--strict', tooDeep('strict'));
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^Failed: find_duplicates::FileError in the thread 'walker': cannot stat .*: File name too long$/m,
    );
    expect(code).toBe(1);
  });

  // Root may read every file, so root runs the example as the user `nobody`, if that user can.
  const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const probe = ['--eval', `fs.accessSync(${JSON.stringify(main)})`];
  const possible = spawnSync(process.execPath, probe, nobody).status === 0;

  it.runIf(possible)('may be a file that a hasher opens', async () => {
    const directory = tree('permissions', { a: 'same', b: 'same', locked: 'same' });
    const locked = join(directory, 'locked');
    chmodSync(locked, 0);
    const message = `cannot open ${locked}: Permission denied`;

    const counted = await new Example(['--json', directory], nobody).ended;
    expect(JSON.parse(counted.stdout)).toMatchObject({
      groups: [{ paths: ['a', 'b'] }],
      unreadable: [message],
    });
    expect(counted.code).toBe(0);

    const strict = await new Example(['--strict', directory], nobody).ended;
    expect(strict.stderr).toMatch(
      /^Failed: find_duplicates::FileError in the thread 'hasher \d+': /m,
    );
    expect(strict.stderr).toContain(message);
    expect(strict.code).toBe(1);
  });
});

describe('wrong usage', () => {
  it.each([
    ['an unknown option', ['--nonsense'], "Unknown option '--nonsense'"],
    ['two folders', ['.', '.'], 'One directory, not 2'],
    ['no folder', ['/no/such/folder'], 'Not a directory: /no/such/folder'],
    ['a file', [main], `Not a directory: ${main}`],
  ])('is told, with exit code 2: %s', async (_, args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain('Usage: npm start');
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('is not to ask for --help', async () => {
    const { code, stdout, stderr } = await run('--help');
    expect(stdout).toContain('Usage: npm start');
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });
});

it('survives the end of the worker that has started the threads', async () => {
  const rounds = 2;
  const ended = await runScript('scan-in-worker', [endless('worker'), `${rounds}`]);
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(ended.said.map(({ event }) => event)).toEqual(
    Array.from({ length: rounds }, (_, i) => `round ${i + 1}`),
  );
  for (const { threads } of ended.said) expect(threads).toContain('hasher 1');
});
