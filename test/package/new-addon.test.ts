/** `allstop new-addon`: what it makes and refuses. scripts/test-templates.sh builds and runs what it makes. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'allstop-new-addon-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newAddon(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = join(root, 'dist/cli/main.js');
  const options = { cwd: folder, encoding: 'utf8', timeout: 20_000 } as const;
  return spawnSync(process.execPath, [command, 'new-addon', ...args], options);
}

const COMMON = ['.gitignore', 'README.md', 'exercise.mjs', 'main.mjs', 'package.json'];

describe('a new addon', () => {
  it.each([
    [undefined, ['addon.cc', 'binding.gyp']],
    ['cpp', ['addon.cc', 'binding.gyp']],
    ['c', ['addon.c', 'binding.gyp']],
    ['cmake', ['CMakeLists.txt', 'addon.cc']],
    ['rust', ['Cargo.toml', 'build.mjs', 'build.rs', 'src']],
  ])('of the template %s has its files, its name and exact tools', (template, files) => {
    const name = `My ${template}`;
    const options = template === undefined ? [] : ['--template', template];
    const { status, stdout, stderr } = newAddon(name, ...options);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(`Made ${join(folder, name)} (template ${template ?? 'cpp'}).`);
    expect(stdout).toContain(`\n  cd "${name}"\n`);
    const [, page = ''] = /node_modules\/allstop\/(docs\/\S+)/.exec(stdout) ?? [];
    expect(readFileSync(join(root, page), 'utf8')).toContain('new-addon');
    expect(readdirSync(join(folder, name)).toSorted()).toEqual([...COMMON, ...files].toSorted());
    const made = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'));
    expect(made.name).toBe(`my-${template}`);
    expect(made.dependencies).toEqual({ allstop: `^${manifest.version}` });
    for (const [tool, version] of Object.entries(made.devDependencies ?? {})) {
      expect({ tool, version }).toEqual({ tool, version: manifest.devDependencies[tool] });
    }
    expect(made.scripts).toMatchObject({ build: expect.any(String), start: 'node main.mjs' });
    expect(made.scripts.check).toContain('allstop check-addon');
  });

  it('goes into a folder that is there and empty, and says where as JSON', () => {
    mkdirSync(join(folder, 'there'));
    const { status, stdout } = newAddon('there', '--json');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ 'new-addon': join(folder, 'there'), template: 'cpp' });
  });
});

/** A copy of what `new-addon` needs of the package. @returns its command */
function copyOfPackage(name: string): string {
  const copy = join(folder, name);
  for (const part of ['dist', 'templates', 'package.json']) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
  return join(copy, 'dist/cli/main.js');
}

describe.skipIf(process.platform === 'win32')('on a POSIX system, a new addon', () => {
  const run = (command: string, ...args: string[]) =>
    spawnSync(process.execPath, [command, 'new-addon', ...args], { cwd: folder, encoding: 'utf8' });

  it('of a package that is read-only can be written', () => {
    const command = copyOfPackage('read-only');
    spawnSync('chmod', ['-R', 'a-w', join(folder, 'read-only/templates')]);
    const { status, stderr } = run(command, 'writable', '--template', 'rust');
    spawnSync('chmod', ['-R', 'u+w', join(folder, 'read-only/templates')]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const name of ['', 'package.json', '.gitignore', 'src', 'src/lib.rs']) {
      expect(statSync(join(folder, 'writable', name)).mode & 0o200).toBe(0o200);
    }
  });

  it('that cannot be made leaves nothing behind', () => {
    const command = copyOfPackage('damaged');
    rmSync(join(folder, 'damaged/templates/cpp'), { recursive: true });
    mkdirSync(join(folder, 'stays'));
    for (const name of ['not/made', 'stays']) {
      const { status, stderr } = run(command, name);
      expect(status).toBe(1);
      expect(stderr).toMatch(/^allstop: the files cannot be made: ENOENT/);
    }
    expect(existsSync(join(folder, 'not'))).toBe(false);
    expect(readdirSync(join(folder, 'stays'))).toEqual([]);
  });

  it('goes into the empty folder that a link names', () => {
    mkdirSync(join(folder, 'linked'));
    symlinkSync('linked', join(folder, 'link'));
    expect(newAddon('link')).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(join(folder, 'linked'))).toContain('main.mjs');
  });

  it('is entered by the command that is printed, whatever its name', () => {
    const name = `we 'ird" & $x\u0060`;
    const line = /^ {2}(cd .*)$/m.exec(newAddon(name).stdout)?.[1] ?? '';
    const { stdout } = spawnSync('sh', ['-c', `${line} && pwd`], { cwd: folder, encoding: 'utf8' });
    expect(stdout).toBe(`${join(folder, name)}\n`);
  });

  it('of the template rust says where cargo is missing', () => {
    newAddon('crate', '--template', 'rust');
    const env = { PATH: join(folder, 'nothing') };
    const options = { cwd: join(folder, 'crate'), encoding: 'utf8', env } as const;
    const { status, stderr } = spawnSync(process.execPath, ['build.mjs'], options);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^cargo cannot be run .*rustup\.rs\n$/);
  });
});

describe('what new-addon refuses', () => {
  it('is a folder that is not empty, which stays as it is', () => {
    mkdirSync(join(folder, 'full'));
    writeFileSync(join(folder, 'full/notes.txt'), 'mine');
    const { status, stdout, stderr } = newAddon('full');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(`the folder ${join(folder, 'full')} is not empty`);
    expect(readdirSync(join(folder, 'full'))).toEqual(['notes.txt']);
  });

  it('is a path that is a file', () => {
    writeFileSync(join(folder, 'file'), '');
    const { status, stderr } = newAddon('file');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^allstop: the folder cannot be made: .*ENOTDIR/);
  });

  it.runIf(process.platform === 'linux')('is in a folder of the system that takes none', () => {
    const { status, stderr } = newAddon('/proc/nope/addon');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^allstop: the folder cannot be made: .*ENOENT/);
  });

  it.each([
    [[], "'DIR'"],
    [[''], 'DIR is empty'],
    [['wrong', '--template', 'go'], "--template must be one of cpp, c, cmake, rust, not 'go'"],
    [['wrong', 'more'], 'too many arguments'],
  ])('is wrong usage: %j', (args, why) => {
    const { status, stdout, stderr } = newAddon(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(why);
    expect(stderr).toContain('Usage: allstop new-addon DIR');
    expect(readdirSync(folder)).not.toContain('wrong');
  });
});
