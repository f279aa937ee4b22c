// Patches of ours against addons of others, each at a pinned release from npm: fetched, patched,
// built, and tested. Outside the gate, since it downloads and compiles for minutes.
//
//   node adoption/run.mjs [--keep] [argon2] [bcrypt] [native-watchdog] [parcel-watcher] [serialport]
//                         [sqlite]
//
// ALLSTOP_RUNTIMES: paths of runtimes for check-addon and node:sqlite, with commas between.
// The package `allstop` is this repository, which must have been compiled.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const work = join(root, 'build-adoption');
const nodeGyp = join(root, 'node_modules/node-gyp/bin/node-gyp.js');
const allstop = join(root, 'dist/cli/main.js');

const env = { ...process.env, npm_config_update_notifier: 'false' };
const prefix = resolve(process.execPath, '../..');
if (existsSync(join(prefix, 'include/node/node_api.h'))) env.npm_config_nodedir ??= prefix;

/** Runs a command; its output is shown only if it fails, or if `isShown`. */
function run(command, args, folder, { isShown = false, mayFail = false } = {}) {
  const result = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8', timeout: 600_000 });
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}`;
  if (result.status !== 0 && !mayFail) {
    throw new Error(`${command} ${args.join(' ')}: ${result.status ?? result.signal}\n${output}`);
  }
  if (isShown) process.stdout.write(result.stdout);
  return result;
}

/** Unpacks a release of npm with its dependencies, and links allstop into it. */
function fetch(spec, name, { dev = false } = {}) {
  const folder = join(work, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', spec], folder).stdout);
  run('tar', ['xzf', filename, '--strip-components=1'], folder);
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  run('npm', ['install', ...flags, dev ? '--include=dev' : '--omit=dev'], folder);
  mkdirSync(join(folder, 'node_modules'), { recursive: true }); // a release may have no dependencies
  symlinkSync(root, join(folder, 'node_modules/allstop'), 'dir');
  return folder;
}

function patch(folder, file) {
  run('patch', ['-p1', '-i', file], folder);
  const lines = readFileSync(file, 'utf8').split('\n');
  const added = lines.filter((line) => /^\+(?!\+\+ )/.test(line)).length;
  const removed = lines.filter((line) => /^-(?!-- )/.test(line)).length;
  console.log(`the patch: +${added} -${removed} lines`);
}

const build = (folder) => run(process.execPath, [nodeGyp, 'rebuild', '--silent'], folder);

/** How many cases of check-addon are not ok, by their result. */
function crashes(addon, exercise) {
  const runtimes = process.env.ALLSTOP_RUNTIMES ?? process.execPath;
  const args = [allstop, 'check-addon', addon, '--exercise', exercise, '--json'];
  args.push('--runtimes', runtimes);
  const { stdout, stderr } = run(process.execPath, args, root, { mayFail: true });
  if (!stdout.startsWith('[')) throw new Error(stderr);
  const rows = JSON.parse(stdout);
  const counts = {};
  for (const { result } of rows) counts[result] = (counts[result] ?? 0) + 1;
  const failed = rows.length - (counts.ok ?? 0);
  return { failed, text: `${failed} of ${rows.length} cases not ok ${JSON.stringify(counts)}` };
}

/**
 * What check-addon says before and after a patch. Both are compiled here: a binary of the release
 * may have been made with another compiler.
 *
 * @param addon the file that check-addon loads
 */
function beforeAndAfter(name, { spec, file, addon }) {
  const here = join(import.meta.dirname, name);
  const exercise = join(here, 'exercise.mjs');
  const compiled = (folder) => {
    rmSync(join(folder, 'prebuilds'), { recursive: true, force: true });
    build(folder);
    return folder;
  };
  const before = compiled(fetch(spec, `${name}-before`));
  console.log(`before: ${crashes(join(before, addon), exercise).text}`);
  const after = fetch(spec, name);
  patch(after, join(here, file));
  compiled(after);
  const { failed, text } = crashes(join(after, addon), exercise);
  console.log(`after: ${text}`);
  if (failed > 0) throw new Error('the patched addon does not survive its worker');
}

const projects = {
  argon2() {
    beforeAndAfter('argon2', {
      spec: 'argon2@0.45.1',
      file: 'argon2-0.45.1.patch',
      addon: 'argon2.cjs',
    });
  },

  bcrypt() {
    const here = join(import.meta.dirname, 'bcrypt');
    const folder = fetch('bcrypt@6.0.0', 'bcrypt', { dev: true });
    rmSync(join(folder, 'prebuilds'), { recursive: true }); // or node-gyp-build takes them
    patch(folder, join(here, 'bcrypt-6.0.0.patch'));
    build(folder);
    const { stderr } = run('npx', ['jest', '--silent', '--testTimeout=60000', 'test'], folder);
    console.log(`its own tests: ${/^Tests:.*$/m.exec(stderr)?.[0]}`);
    cpSync(join(here, 'check.mjs'), join(folder, 'check.mjs'));
    run(process.execPath, ['check.mjs'], folder, { isShown: true });
  },

  'native-watchdog'() {
    beforeAndAfter('native-watchdog', {
      spec: 'native-watchdog@1.4.2',
      file: 'native-watchdog-1.4.2.patch',
      addon: 'build/Release/watchdog.node',
    });
  },

  'parcel-watcher'() {
    beforeAndAfter('parcel-watcher', {
      spec: '@parcel/watcher@2.6.0',
      file: 'watcher-2.6.0.patch',
      addon: 'build/Release/watcher.node',
    });
  },

  serialport() {
    beforeAndAfter('serialport', {
      spec: '@serialport/bindings-cpp@13.0.1',
      file: 'bindings-cpp-13.0.1.patch',
      addon: 'dist/index.js',
    });
  },

  // Nothing is patched: allstop/sqlite works with the bindings as they are.
  sqlite() {
    const check = join(import.meta.dirname, 'sqlite/check.mjs');
    const folder = fetch('better-sqlite3@12.11.1', 'better-sqlite3');
    build(folder);
    const project = join(work, 'sqlite');
    rmSync(project, { recursive: true, force: true }); // what an earlier --keep has left
    mkdirSync(join(project, 'node_modules'), { recursive: true });
    symlinkSync(root, join(project, 'node_modules/allstop'), 'dir');
    symlinkSync(folder, join(project, 'node_modules/better-sqlite3'), 'dir');
    cpSync(check, join(project, 'check.mjs'));
    const measure = (program, name) => {
      console.log(`${name}, ${run(program, ['--version']).stdout.trim()}:`);
      run(program, ['check.mjs', name], project, { isShown: true });
    };
    measure(process.execPath, 'better-sqlite3');
    // node:sqlite is in Node 22.13 and later.
    const programs = (process.env.ALLSTOP_RUNTIMES ?? process.execPath).split(',');
    for (const program of programs) {
      const major = Number(/^v(\d+)/.exec(run(program, ['--version']).stdout)?.[1]);
      if (major >= 22) measure(program, 'node:sqlite');
    }
  },
};

const { values, positionals } = parseArgs({
  options: { keep: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const chosen = positionals.length > 0 ? positionals : Object.keys(projects);
for (const name of chosen) {
  if (!Object.hasOwn(projects, name))
    throw new Error(`Unknown project '${name}'. The projects: ${Object.keys(projects).join(', ')}`);
}
if (!existsSync(allstop)) throw new Error('Run `npm run compile` first');
let failed = 0;
for (const name of chosen) {
  console.log(`=== ${name}`);
  try {
    await projects[name]();
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.message}`);
  }
}
if (!values.keep) rmSync(work, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
