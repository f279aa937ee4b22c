// Compiles the targets that are named, and only what has changed since the last time:
//   compile.mjs addon ts example test-addon
// `npm start` and `npm test` run it first. If nothing has changed, it prints nothing and
// takes a fraction of a second. It prints on stderr: the stdout of `npm start` is the
// program's own.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const root = resolve(import.meta.dirname, '..');
const require = createRequire(import.meta.url);
const say = (line) => process.stderr.write(`${line}\n`);

const targets = {
  addon: {
    title: 'the addon',
    source: '.',
    out: 'build-cmake',
    options: ['--CDALLSTOP_ADDON=ON'],
    seconds: 30,
  },
  example: {
    title: 'the addon of examples/find-duplicates',
    source: 'examples/find-duplicates/native',
    out: 'examples/find-duplicates/build',
    options: [],
    seconds: 10,
  },
  'test-addon': {
    title: 'the addon of the tests',
    source: 'test/addons/test-addon',
    out: 'test/addons/test-addon/build',
    options: [],
    seconds: 10,
  },
};

const read = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};

/** The path of a program of a package in node_modules. */
function programOf(name, bin) {
  const manifest = require.resolve(`${name}/package.json`);
  return join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin[bin]);
}

class Failure extends Error {}

/** Runs a program to its end. `onLine` is called with each line of its stdout. */
async function run(program, args, onLine = () => {}) {
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((settle, reject) => {
    child.once('error', reject).once('close', (code) => settle(code));
  });
  const lines = [];
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    onLine(line);
  });
  createInterface(child.stderr).on('line', (line) => lines.push(line));
  const code = await ended;
  if (code !== 0)
    throw new Failure(`${lines.join('\n')}\n${program} has failed (exit code ${code})`);
  return lines;
}

/** Configures a build by CMake, and deletes CMake's cache of another folder or Node before. */
async function configure({ source, out, options }, stamp) {
  if (read(join(root, out, 'configured.json')) === stamp) return;
  rmSync(join(root, out), { recursive: true, force: true });
  const cmakeJs = programOf('cmake-js', 'cmake-js');
  await run(process.execPath, [cmakeJs, 'configure', '-d', source, '-O', out, ...options]);
  writeFileSync(join(root, out, 'configured.json'), stamp);
}

async function compileNative(target) {
  const { title, out, seconds } = target;
  const started = Date.now();
  let isAnnounced = false;
  const announce = () => {
    if (!isAnnounced) say(`Compiling ${title} (about ${seconds} s the first time) ...`);
    isAnnounced = true;
  };
  const cmakeJs = require('cmake-js/package.json').version;
  const stamp = JSON.stringify({
    root,
    node: process.version,
    arch: process.arch,
    cmakeJs,
    target,
  });
  if (read(join(root, out, 'configured.json')) !== stamp) announce();
  await configure(target, stamp);
  const args = ['--build', out, '--config', 'Release', '--parallel', `${availableParallelism()}`];
  const lines = await run('cmake', args, (line) => {
    if (/Building|Linking|\.cc$/.test(line)) announce();
  });
  if (lines.some((line) => /\bwarning\b/.test(line))) say(lines.join('\n'));
  if (isAnnounced) say(`Compiled ${title} in ${Math.round((Date.now() - started) / 1000)} s`);
}

/** A hash of the names and contents of `paths`: files, and folders with all files in them. */
function hashOf(paths) {
  const hash = createHash('sha256');
  const files = paths.flatMap((path) => {
    try {
      return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name));
    } catch (error) {
      return error.code === 'ENOTDIR' ? [join(root, path)] : [];
    }
  });
  for (const file of files.toSorted()) hash.update(`${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

const TS_SOURCES = ['lib', 'package.json', 'package-lock.json', 'tsconfig.json'];
const TS_STAMP = join(root, 'build-ts/compiled.json');
const BUNDLER = ['bundle', 'declarations', 'line-maps'].map((name) => `scripts/${name}.mjs`);
const stampOfTs = () =>
  JSON.stringify({
    sources: hashOf([...TS_SOURCES, ...BUNDLER]),
    dist: hashOf(['dist']),
  });

async function compileTs() {
  if (read(TS_STAMP) === stampOfTs()) return;
  say('Compiling TypeScript (about 2 s) ...');
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  await run(process.execPath, [programOf('typescript', 'tsc'), '-p', 'tsconfig.json']);
  const { bundle } = await import('./bundle.mjs');
  await bundle();
  mkdirSync(dirname(TS_STAMP), { recursive: true });
  writeFileSync(TS_STAMP, stampOfTs());
}

// The example is written for POSIX.
const names = process.argv
  .slice(2)
  .filter((name) => name !== 'example' || process.platform !== 'win32');
const known = [...Object.keys(targets), 'ts'];
if (names.length === 0 || !names.every((name) => known.includes(name))) {
  say(`Usage: compile.mjs TARGET...\nTargets: ${known.join(', ')}`);
  process.exit(2);
}
if (names.some((name) => name !== 'ts') && spawnSync('cmake', ['--version']).error !== undefined) {
  say('There is no cmake on the PATH. Compiling needs cmake, make, python3 and a C++17 compiler.');
  say('On Debian: apt-get install cmake make python3 g++');
  process.exit(1);
}
try {
  for (const name of names) await (name === 'ts' ? compileTs() : compileNative(targets[name]));
} catch (error) {
  say(error instanceof Failure ? error.message : error.stack);
  process.exit(1);
}
