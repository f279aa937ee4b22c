/**
 * `allstop build`, as a child process in a copy of the package. A stand-in for cmake-js simulates
 * the failures; one test compiles with the real cmake-js.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compiledBinary, type Project, publishedCopy } from '../support/published-copy.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const env = { ...process.env, NODE_OPTIONS: '', ALLSTOP_BINARY: '' };

let project: Project;
beforeEach(() => {
  project = publishedCopy({ compiled: true });
});
afterEach(() => rmSync(project.folder, { recursive: true, force: true }));

type Run = { status: number | null; stdout: string; stderr: string };
function build(args: string[] = [], options: { uid?: number } = {}): Run {
  return spawnSync(process.execPath, [project.cli, 'build', ...args], {
    cwd: project.folder,
    encoding: 'utf8',
    env,
    ...options,
  });
}

/**
 * Installs a stand-in for a package in the project. It runs `script`, in which `out` is defined.
 */
function install(name: 'cmake-js' | 'node-addon-api', script = ''): void {
  const folder = join(project.folder, 'node_modules', name);
  mkdirSync(folder);
  const bin = { [name]: 'main.cjs' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '8.0.0', bin }));
  const given = "const out = process.argv.find((arg) => arg.startsWith('--out=')).slice(6);\n";
  writeFileSync(join(folder, 'main.cjs'), given + script);
}

const compiled = (): string => join(project.packaged, 'build-cmake/Release/allstop.node');

/** Checks that there is no temporary folder, and still the binary from before. */
function expectUntouched(): void {
  expect(readdirSync(project.packaged).filter((name) => name.includes('tmp'))).toEqual([]);
  expect(readFileSync(compiled()).equals(readFileSync(compiledBinary))).toBe(true);
}

describe('without what it needs', () => {
  it('names both peers, and the remedy', () => {
    const { status, stdout, stderr } = build();
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^allstop: cmake-js and node-addon-api are needed to compile/);
    expect(stderr).toContain('What to do: npm install --save-dev cmake-js node-addon-api\n');
    expectUntouched();
  });

  it('names the one that is missing', () => {
    install('cmake-js');
    const { status, stdout, stderr } = build(['--json']);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^allstop: node-addon-api is needed to compile/);
    expect(stderr).toContain('What to do: npm install --save-dev node-addon-api\n');
  });

  it('says where it cannot write', () => {
    install('cmake-js');
    install('node-addon-api');
    // Root may write anywhere, so then the command runs as another user.
    const isRoot = process.getuid?.() === 0;
    spawnSync('chmod', ['-R', isRoot ? 'a+rX' : 'a-w', project.folder]);
    const { status, stdout, stderr } = build([], isRoot ? { uid: 65_534 } : {});
    spawnSync('chmod', ['-R', 'u+w', project.folder]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^allstop: the folder of the package is not writable: EACCES/);
    expect(stderr).toContain(project.packaged);
    expectUntouched();
  });
});

describe('a build that fails', () => {
  beforeEach(() => install('node-addon-api'));

  it('ends in a line of ours, and leaves the binary from before', () => {
    install('cmake-js', "console.log('no compiler'); process.exit(3);");
    const { status, stdout, stderr } = build();
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /no compiler\nallstop: the binary could not be compiled \(exit code 3\)\nWhat to do: .*CMake 3\.18.*\n$/,
    );
    expectUntouched();
  });

  it('or makes what does not work', () => {
    install(
      'cmake-js',
      `const fs = require('node:fs');
      fs.mkdirSync(out + '/Release');
      fs.writeFileSync(out + '/Release/allstop.node', 'garbage');`,
    );
    const { status, stdout, stderr } = build();
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /\nallstop: the binary was compiled, but does not work and is not used: it is damaged/,
    );
    expectUntouched();
  });

  it('removes what a process left that was killed long ago, and nothing newer', () => {
    const [old, newer] = ['old', 'newer'].map((name) => {
      const staging = join(project.packaged, `build-cmake-tmp-${name}`);
      mkdirSync(staging);
      return staging;
    }) as [string, string];
    utimesSync(old, 0, 0);
    install('cmake-js');
    expect(build().status).toBe(1);
    expect([existsSync(old), existsSync(newer)]).toEqual([false, true]);
  });

  it('or makes nothing', () => {
    install('cmake-js');
    expect(build()).toMatchObject({ status: 1, stdout: '' });
    expectUntouched();
  });

  for (const [signal, exitCode, tags] of [
    ['SIGINT', 130, []],
    ['SIGTERM', 143, ['long']],
    ['SIGHUP', 129, ['long']],
  ] as [NodeJS.Signals, number, string[]][]) {
    it(`is over, with all that it has started, after ${signal}`, { tags }, () =>
      isOver(signal, exitCode),
    );
  }

  async function isOver(signal: NodeJS.Signals, exitCode: number): Promise<void> {
    install(
      'cmake-js',
      `const forever = 'console.error("compiling"); setInterval(() => {}, 1000)';
      require('node:child_process').spawnSync(process.execPath, ['-e', forever], { stdio: 'inherit' });`,
    );
    const child = spawn(process.execPath, [project.cli, 'build'], { cwd: project.folder, env });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      if (!stderr.includes('\ncompiling') && `${stderr}${text}`.includes('\ncompiling')) {
        child.kill(signal);
      }
      stderr += text;
    });
    // 'close' is emitted when every process that has this stderr has ended, the compiler included.
    const status = await new Promise((resolve) => child.once('close', resolve));
    expect({ status, stderr }).toMatchObject({
      status: exitCode,
      stderr: expect.stringContaining(`\nallstop: ended by ${signal}\n`),
    });
    expectUntouched();
  }
});

describe('with cmake-js and a compiler', () => {
  it('compiles in a project with a space in its path, and doctor finds the binary', {
    tags: 'long',
    timeout: 1_200_000,
  }, () => {
    for (const name of ['cmake-js', 'node-addon-api']) {
      symlinkSync(join(root, 'node_modules', name), join(project.folder, 'node_modules', name));
    }
    rmSync(join(project.packaged, 'build-cmake'), { recursive: true });
    const { status, stdout, stderr } = build(['--json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.any(String) });
    expect(JSON.parse(stdout)).toEqual({ build: compiled() });
    expect(existsSync(compiled())).toBe(true);
    expect(readdirSync(project.packaged).filter((name) => name.includes('tmp'))).toEqual([]);

    const doctor = spawnSync(process.execPath, [project.cli, 'doctor'], { encoding: 'utf8', env });
    expect(doctor.status).toBe(0);
    expect(doctor.stdout).toContain(`${compiled()} (compiled on this machine; `);
  });
});
