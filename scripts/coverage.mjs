// npm run coverage: which lines and branches of native/ and lib/ the tests reach.
//   coverage.mjs [TEST-FILE...]         runs the C++ tests and the vitest suites, the long ones too
//                                       (or only the named files)
//   coverage.mjs --add [TEST-FILE...]   adds to what earlier runs have collected, and runs the
//                                       vitest suites only
//   coverage.mjs --report               runs nothing, and reports what was collected
// It works in a copy of the checkout, build-coverage/tree, in which the addon, the native tests and
// dist/ are compiled for coverage, so that `npm test` keeps its own build. The exit code is 1 if a
// part of the code has less than the LEAST of scripts/coverage/verdict.mjs. A test that fails is
// printed and changes no exit code: tests that measure time may fail in a build that counts.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { lcovOfNative, nativeEnvironment } from './coverage/native.mjs';
import { bundleWithSources, lcovOfTypeScript } from './coverage/typescript.mjs';
import { judge } from './coverage/verdict.mjs';
import { prepare, runtimes } from './matrix/runtimes.mjs';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'build-coverage');
const tree = join(folder, 'tree');
const v8 = join(folder, 'v8');
const newerV8 = join(folder, 'v8-newer');
const v8s = [v8, newerV8];
const say = (line) => process.stderr.write(`${line}\n`);
const { values: flags, positionals: testFiles } = parseArgs({
  allowPositionals: true,
  options: {
    add: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
});

/** The runtime for what Node 20 has not: SQLite. */
const NEWER = 'Node 26';
const NEWER_TARGET = 'linux-x64-glibc';
const hasSqlite = isBuiltin('node:sqlite');

function need(program, debianPackage) {
  if (spawnSync(program, ['--version']).error === undefined) return;
  say(`There is no ${program} on the PATH. On Debian: apt-get install ${debianPackage}`);
  process.exit(1);
}

/** Runs a program in the copy, shows its output, and returns whether it has succeeded. */
function run(title, environment, program, ...args) {
  say(`=== ${title}`);
  const started = Date.now();
  const env = { ...process.env, ...environment };
  const { status } = spawnSync(program, args, { cwd: tree, env, stdio: 'inherit' });
  const seconds = Math.round((Date.now() - started) / 1000);
  say(`--- ${status === 0 ? 'ok' : 'FAILED'}: ${title} (${seconds} s)`);
  return status === 0;
}

const sameFile = (one, other) => {
  try {
    return readFileSync(one).equals(readFileSync(other));
  } catch {
    return false;
  }
};

/** Files that have not changed keep their times, so that CMake compiles only what has changed. */
function copyTree() {
  const args = ['ls-files', '-co', '--exclude-standard', '-z'];
  const listed = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  const files = listed.stdout.split('\0').filter((file) => file !== '');
  const list = join(folder, 'copied.json');
  let earlier = [];
  try {
    earlier = JSON.parse(readFileSync(list, 'utf8'));
  } catch {
    // The first run.
  }
  for (const file of earlier) if (!files.includes(file)) rmSync(join(tree, file), { force: true });
  for (const file of files) {
    const [from, to] = [join(root, file), join(tree, file)];
    let content;
    try {
      content = readFileSync(from);
    } catch {
      continue; // deleted, and not yet committed
    }
    if (sameFile(from, to)) continue;
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, content);
  }
  writeFileSync(list, JSON.stringify(files));
  for (const name of ['node_modules', 'build-nats']) {
    mkdirSync(join(root, name), { recursive: true });
    rmSync(join(tree, name), { force: true });
    symlinkSync(join(root, name), join(tree, name));
  }
}

async function collect() {
  const profiles = join(folder, 'profiles');
  copyTree();
  const environment = nativeEnvironment({ tree, folder });
  const targets = ['addon', 'ts', 'example', 'test-addon'];
  if (!run('compiling', environment, process.execPath, 'scripts/compile.mjs', ...targets)) {
    return false;
  }
  await bundleWithSources(tree);
  let ok = true;
  if (!flags.add) {
    for (const each of [profiles, ...v8s]) rmSync(each, { recursive: true, force: true });
    ok = run('native tests', environment, 'bash', 'scripts/test-native.sh', 'plain');
  }
  const config = ['--config', 'test/coverage/vitest.config.ts'];
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...config];
  ok = run('vitest', { NODE_V8_COVERAGE: v8 }, process.execPath, ...vitest, ...testFiles) && ok;
  if (testFiles.length > 0 || hasSqlite) return ok;
  const newer = runtimes.find(({ name, target }) => name === NEWER && target === NEWER_TARGET);
  prepare([newer]);
  const file = 'test/lifecycle/sqlite.test.ts';
  const counted = { NODE_V8_COVERAGE: newerV8 };
  return run(`vitest on ${NEWER}`, counted, newer.program, ...vitest, file) && ok;
}

need('clang++', 'clang');
need('llvm-cov', 'llvm');
need('genhtml', 'lcov');
mkdirSync(tree, { recursive: true });
const passed = flags.report || (await collect());
const lcov = join(folder, 'lcov.info');
writeFileSync(
  lcov,
  lcovOfNative({ root, tree, folder }) +
    (await lcovOfTypeScript({ root, tree, folders: v8s.filter(existsSync) })),
);
const html = join(folder, 'html');
rmSync(html, { recursive: true, force: true });
spawnSync('genhtml', ['--branch-coverage', '--quiet', '-p', root, '-o', html, lcov], {
  stdio: ['ignore', 'ignore', 'inherit'],
});
const isEnough = judge({ root, folder, lcov: readFileSync(lcov, 'utf8') });
say(`The report: ${join(html, 'index.html')}`);
if (!passed) say('Something has failed: see above. What it would have reached may be missing.');
process.exit(isEnough ? 0 : 1);
