/** `allstop doctor`, run as a child process, with and without problems. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { type Project, publishedCopy } from '../support/published-copy.ts';

type Check = {
  name: string;
  ok: boolean;
  target?: string;
  detail?: string;
  cause?: string;
  remedy?: string;
};
type Run = { status: number | null; stdout: string; stderr: string };
type Setting = { cli?: string; flags?: string[]; env?: NodeJS.ProcessEnv };

const root = fileURLToPath(new URL('../..', import.meta.url));
const here = join(root, 'dist/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'doctor '));
const folders = [folder];
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

function doctor(args: string[] = [], { cli = here, flags = [], env = {} }: Setting = {}): Run {
  return spawnSync(process.execPath, [...flags, cli, 'doctor', ...args], {
    encoding: 'utf8',
    timeout: 120_000,
    env: { ...process.env, NODE_OPTIONS: '', ALLSTOP_BINARY: '', ...env },
  });
}

/** The checks. Fails if stdout has anything but the JSON. */
function checks(setting?: Setting): { status: number | null; ok: boolean; checks: Check[] } {
  const { status, stdout } = doctor(['--json'], setting);
  return { status, ...JSON.parse(stdout) };
}

function problems(setting: Setting): Check[] {
  const found = checks(setting);
  expect(found).toMatchObject({ status: 1, ok: false });
  return found.checks.filter(({ ok }) => !ok);
}

function project(): Project {
  const made = publishedCopy({ compiled: true });
  folders.push(made.folder);
  return made;
}

const file = (name: string, content: string): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe('where all is well', () => {
  it('says so, a line a check, without colour', () => {
    const { status, stdout, stderr } = doctor();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.at(-1)).toBe('allstop works here.');
    for (const name of ['runtime', 'platform', 'node-api', 'permissions', 'binary', 'abi']) {
      expect(stdout).toMatch(new RegExp(`^ok {6}${name} +\\S`, 'm'));
    }
    expect(stdout).toMatch(/^ok {6}self-test {4}a worker stops its coordinator/m);
    expect(stdout).not.toContain('\u001B');
  });

  it('--json says the same to programs', () => {
    const { status, stdout, stderr } = doctor(['--json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const found: { ok: boolean; checks: Check[] } = JSON.parse(stdout);
    expect(Object.keys(found)).toEqual(['ok', 'checks']);
    expect(found.ok).toBe(true);
    for (const check of found.checks) {
      expect(check).toMatchObject({ ok: true, name: expect.any(String) });
      expect(check).not.toHaveProperty('cause');
    }
    const named = new Map(found.checks.map((check) => [check.name, check]));
    expect(named.get('runtime')?.target).toBe(`Node.js ${process.versions.node}`);
    expect(named.get('platform')?.target).toMatch(`${process.platform}-${process.arch}`);
    expect(named.get('abi')?.target).toMatch(/^version \d+\.\d+$/);
    expect(named.get('binary')?.detail).toMatch(/^(compiled on this machine|prebuilt for .+); /);
  });
});

it.skipIf(process.platform === 'win32')('names a working directory that was deleted', () => {
  const gone = mkdtempSync(join(tmpdir(), 'doctor-gone-'));
  const script = 'cd "$1"; rmdir "$1"; exec "$2" "$3" doctor --json';
  const { stdout } = spawnSync('sh', ['-c', script, 'sh', gone, process.execPath, here], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  const found = JSON.parse(stdout) as { checks: Check[] };
  expect(found.checks.filter(({ ok }) => !ok)).toMatchObject([
    {
      name: 'self-test',
      cause: expect.stringMatching(/^the working directory of this process was deleted/),
      remedy: expect.stringMatching(/go to a folder that exists/),
    },
  ]);
});

it('blames the machine, not the binary, for a process that is too slow', { tags: 'long' }, () => {
  const slow = `if (process.argv[1].endsWith('probe-process.js'))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const flags = ['--import', `data:text/javascript,${encodeURIComponent(slow)}`];
  expect(problems({ flags })).toMatchObject([
    {
      name: 'binary',
      cause: 'the process that loaded it did not answer within 30 s',
      remedy: 'try again when the machine is less busy',
    },
  ]);
});

describe('servers on the command line', () => {
  it('that are named twice are checked once', { tags: 'long' }, () => {
    const { stdout } = doctor(['--servers', '127.0.0.1:1,127.0.0.1:1']);
    expect(stdout.match(/^\d\. tcp 127\.0\.0\.1:1$/gm)).toHaveLength(1);
  });

  it('whose domain is no name are wrong usage of that option', () => {
    const { status, stderr } = doctor(['--servers', 'a', '--domain', 'a b']);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^allstop: --domain must be a token/);
  });
});

describe('a file that every process loads first', () => {
  const loads = (name: string, content: string): Setting => ({
    env: { NODE_OPTIONS: `--require "${file(name, content).replaceAll('\\', '/')}"` },
  });

  it('may print what looks like JSON, and other JSON', () => {
    const text = `console.log('{ hello }'); console.log('{"failed":{"cause":"mine"}}');`;
    const { status, stdout } = doctor([], loads('prints.cjs', text));
    expect({ status, problem: /not ok/.test(stdout) }).toEqual({ status: 0, problem: false });
    const { stdout: network } = doctor(['--servers', '127.0.0.1:1'], loads('prints.cjs', text));
    expect(network).toMatch(/^binary {2}ok/m);
  });

  it('and fails, is told by its error, not by its source', () => {
    const text = `const child = /probe-process/.test(process.argv[1]);
      if (child) throw new RangeError('no luck');`;
    const [binary] = problems(loads('throws.cjs', text));
    expect(binary?.cause).toMatch(/printed: RangeError: no luck$/);
  });
});

describe('a binary that does not load', () => {
  it.each([
    ['is not there', join(folder, 'missing.node'), /a file that is not there/],
    ['is garbage', file('garbage.node', 'garbage'), /damaged/],
    ['is no addon', file('binary.so', ''), /ends in \.node/],
  ])('%s', (_, path, cause) => {
    const env = { ALLSTOP_BINARY: path };
    const [problem, ...others] = problems({ env });
    expect(others).toEqual([]);
    expect(problem).toMatchObject({ name: 'binary', target: path });
    expect(problem?.cause).toMatch(cause);
    expect(problem?.remedy).toMatch(/unset it/);
    expect(problem?.detail).toMatch(/^named by ALLSTOP_BINARY/);
  });

  it('is told to people, too, with the cause and what to do', () => {
    const path = join(folder, 'missing.node');
    const env = { ALLSTOP_BINARY: path };
    const [problem] = problems({ env });
    const { status, stdout } = doctor([], { env });
    expect(status).toBe(1);
    expect(stdout).toContain(`\nnot ok  binary       ${path}`);
    expect(stdout).toContain(`\n${' '.repeat(21)}Cause: ${problem?.cause}\n`);
    expect(stdout).toContain(`\n${' '.repeat(21)}What to do: ${problem?.remedy}\n`);
    expect(stdout).toMatch(/\n1 problem found\.\n$/);
  });

  it('is missing from the package', () => {
    const { cli, packaged } = project();
    rmSync(join(packaged, 'build-cmake'), { recursive: true });
    expect(problems({ cli })).toMatchObject([
      { name: 'binary', cause: expect.stringContaining('the prebuilds folder') },
    ]);
  });

  it('ends the process that loads it', () => {
    const source = file(
      'crash.c',
      '#include <stdlib.h>\n__attribute__((constructor)) void boom(void) { abort(); }\n',
    );
    const path = join(folder, 'crash.node');
    execFileSync('cc', ['-shared', '-fPIC', '-o', path, source]);
    expect(problems({ env: { ALLSTOP_BINARY: path } })).toMatchObject([
      {
        name: 'binary',
        target: path,
        cause: expect.stringContaining('ended by SIGABRT'),
        remedy: expect.stringContaining('unset it'),
      },
    ]);
  });
});

describe('a binary that is forbidden', () => {
  const model =
    Number(process.versions.node.split('.')[0]) < 23 ? '--experimental-permission' : '--permission';

  it.each([
    ['--no-addons', ['--no-addons'], /--no-addons forbids native addons/, /without --no-addons/],
    [
      'the permission model',
      [model, '--allow-fs-read=*'],
      /permission model.* forbids native addons, and workers/,
      /--allow-addons --allow-worker/,
    ],
  ])('by %s', (_, flags, cause, remedy) => {
    const [permissions, binary, ...others] = problems({ flags });
    expect(others).toEqual([]);
    expect(permissions).toMatchObject({ name: 'permissions' });
    expect(permissions?.cause).toMatch(cause);
    expect(permissions?.remedy).toMatch(remedy);
    expect(binary).toMatchObject({ name: 'binary' });
    expect(binary?.remedy).toBe("do what the check 'permissions' says");
  });

  it('or is not, and no child process is needed to try it', () => {
    const flags = [model, '--allow-fs-read=*', '--allow-addons', '--allow-worker'];
    const { status, checks: found } = checks({ flags });
    expect(status).toBe(0);
    expect(found.find(({ name }) => name === 'self-test')).toMatchObject({ ok: true });
  });

  it('or it may be loaded, but no worker started', () => {
    const flags = [model, '--allow-fs-read=*', '--allow-addons'];
    expect(problems({ flags })).toMatchObject([
      { name: 'permissions', cause: expect.stringContaining('forbids workers') },
      { name: 'self-test', cause: expect.stringContaining('restricted') },
    ]);
  });
});

describe('a binary that loads', () => {
  it('of another version than the C header', () => {
    const { cli, packaged } = project();
    const header = join(packaged, 'native/include/allstop/allstop_abi.h');
    const text = readFileSync(header, 'utf8');
    writeFileSync(header, text.replace(/(#define ALLSTOP_ABI_MINOR) \d+u/, '$1 999u'));
    expect(problems({ cli })).toMatchObject([
      {
        name: 'abi',
        cause: expect.stringMatching(/^allstop\.h has version \d+\.999/),
        remedy: expect.stringContaining('allstop build'),
      },
    ]);
  });

  it.each([
    ['and fails', 'self-test-worker.js', "throw new RangeError('no luck');", /no luck/],
    [
      'and ends the process',
      'self-test-worker.js',
      "process.kill(process.pid, 'SIGKILL');",
      /the process was ended by SIGKILL/,
    ],
    [
      'and ends the process when that is about to exit',
      'probe-process.js',
      "process.once('exit', () => process.kill(process.pid, 'SIGKILL'));",
      /the process was ended by SIGKILL/,
    ],
  ])('%s', (_, name, begin, cause) => {
    const { cli, packaged } = project();
    const path = join(packaged, 'dist/cli', name);
    writeFileSync(path, `${begin}\n${readFileSync(path, 'utf8')}`);
    const [problem, ...others] = problems({ cli });
    expect(others).toEqual([]);
    expect(problem).toMatchObject({ name: 'self-test', remedy: expect.any(String) });
    expect(problem?.cause).toMatch(cause);
  });
});
