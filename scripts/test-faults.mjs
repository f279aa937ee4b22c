// Runs programs whose threads are delayed at the fault points of native/core/fault_point.h, with
// one seed after another:
//   node scripts/test-faults.mjs --minutes 5          new seeds for 5 minutes (1 if nothing is said)
//   node scripts/test-faults.mjs --minutes 5 --seed 7 seeds from 7 on
//   node scripts/test-faults.mjs --seed 7             seed 7 only
//   node scripts/test-faults.mjs --quick              a short fixed set of seeds, as the gate runs it
//   node scripts/test-faults.mjs --mutants [NAME...]  finds each fault of test/faults/mutants
//   node scripts/test-faults.mjs --only PROGRAM       scenarios, native-tests or workers
// Everything is built into build-faults/. The first failure ends the run: it prints the seed and
// the command that repeats the failure; the exit code is 1. Linux only.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const built = join(root, 'build-faults');
const say = (line) => process.stdout.write(`${line}\n`);
const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

/** How long one program may take with one seed. Without a fault it takes a second. */
const LIMIT_MS = 60_000;
/** How long the sweep looks for the fault of one mutant. */
const MUTANT_LIMIT_MS = 120_000;
const QUICK_SEEDS = 24;

/** In a sweep of all programs, those that take seconds with a seed run with each eighth one. */
const SLOW_EACH = 8;

const PROGRAMS = {
  /** The scenarios of test/faults/scenarios.cc; `folder` is a build folder of CMake. */
  scenarios: (folder) => [join(folder, 'test/faults/allstop_fault_scenarios')],
  'native-tests': (folder) => [
    join(folder, 'test/native/allstop_native_test'),
    '--gtest_brief=1',
    '--gtest_filter=StressTest.*', // the others have many threads or items: minutes under delays
  ],
  /** JavaScript's threads; its addon is found by ALLSTOP_BINARY. */
  workers: () => [process.execPath, '--expose-gc', join(root, 'test/faults/workers.mjs')],
};

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    quick: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const minutes = Number(values.minutes ?? 1);
const firstSeed = Number(values.seed ?? (values.quick ? 1 : Date.now() % 1_000_000_000));
if (
  !(minutes > 0) ||
  !Number.isSafeInteger(firstSeed) ||
  firstSeed < 1 ||
  (values.only !== undefined && PROGRAMS[values.only] === undefined) ||
  (wanted.length > 0 && !values.mutants)
) {
  say(
    `Usage: node scripts/test-faults.mjs [--minutes N] [--seed S] [--quick] [--mutants [NAME...]] [--only ${Object.keys(PROGRAMS).join('|')}]`,
  );
  process.exit(2);
}
if (process.platform !== 'linux') {
  say(
    'test:faults needs Linux: the linker option --wrap puts the fault points around the mutexes.',
  );
  process.exit(2);
}

/** Runs a program that must succeed. */
function must(program, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: root,
    encoding: 'utf8',
    ...options,
  });
  if (status === 0) return;
  say(`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`);
  say(`${program} ${args.join(' ')} has failed (exit code ${status})`);
  process.exit(1);
}

const parallel = ['--parallel', `${availableParallelism()}`];

/** Builds CMake targets of the sources in `source`, with the fault points, into `folder`. */
function buildNative(source, folder, targets, tests) {
  const options = ['-DALLSTOP_FAULT_INJECTION=ON', `-DALLSTOP_TESTS=${tests}`];
  must('cmake', ['-S', source, '-B', folder, ...options]);
  must('cmake', ['--build', folder, '--target', ...targets, ...parallel]);
}

/** Builds the addon of the sources in `source` into `folder`. @returns the path of the binary */
function buildAddon(source, folder) {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve('cmake-js/package.json');
  const cmakeJs = join(
    dirname(manifest),
    JSON.parse(readFileSync(manifest, 'utf8')).bin['cmake-js'],
  );
  const headers = dirname(require.resolve('node-addon-api/package.json'));
  const options = [
    '--CDALLSTOP_ADDON=ON',
    '--CDALLSTOP_FAULT_INJECTION=ON',
    `--CDNODE_ADDON_API_DIR=${headers}`,
  ];
  must(process.execPath, [cmakeJs, 'configure', '-d', source, '-O', folder, ...options]);
  must('cmake', ['--build', folder, '--target', 'allstop', ...parallel]);
  return join(folder, 'Release/allstop.node');
}

/**
 * Runs one program with one seed in a child process, which is killed after LIMIT_MS.
 *
 * @returns what went wrong; undefined: nothing
 */
async function run(command, seed, binary) {
  const [program, ...args] = command;
  const env = { ...process.env, ALLSTOP_FAULT_SEED: `${seed}`, ALLSTOP_TEST_SEED: `${seed}` };
  if (binary !== undefined) env.ALLSTOP_BINARY = binary;
  const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  }
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, LIMIT_MS);
  const [code, signal] = await new Promise((settle, reject) => {
    child.once('error', reject).once('close', (...end) => settle(end));
  });
  clearTimeout(timer);
  if (code === 0) return undefined;
  const end = isLate ? `has not ended after ${LIMIT_MS / 1000} s` : `ended with ${signal ?? code}`;
  return `${said.trim()}\n${relative(root, program)} ${end}`;
}

/**
 * Runs the programs with one seed after another while `isOn()`.
 *
 * @returns the first failure, or undefined; and how many seeds were run
 */
async function sweep(programs, seed, isOn) {
  let seeds = 0;
  for (; isOn(seeds); ++seeds) {
    for (const { name, command, binary, each } of programs) {
      if (seeds % each !== 0) continue;
      const failure = await run(command, seed + seeds, binary);
      if (failure !== undefined) {
        return { failure: { name, seed: seed + seeds, text: failure }, seeds: seeds + 1 };
      }
    }
  }
  return { failure: undefined, seeds };
}

/** Builds what `names` needs. */
function prepare(names, source, folder) {
  const native = join(folder, 'native');
  const targets = [];
  if (names.includes('scenarios')) targets.push('allstop_fault_scenarios');
  if (names.includes('native-tests')) targets.push('allstop_native_test');
  if (targets.length > 0) {
    buildNative(source, native, targets, names.includes('native-tests') ? 'ON' : 'OFF');
  }
  let binary;
  if (names.includes('workers')) {
    must(process.execPath, ['scripts/compile.mjs', 'ts']);
    binary = buildAddon(source, join(folder, 'addon'));
  }
  return names.map((name) => {
    const each = names.length === 1 || name === 'scenarios' ? 1 : SLOW_EACH;
    return { name, command: PROGRAMS[name](native), binary, each };
  });
}

/** Applies each patch to a copy of the sources, and looks for its fault. */
async function findMutants() {
  const patches = join(root, 'test/faults/mutants');
  const all = readdirSync(patches).toSorted();
  const unknown = wanted.filter((name) => !all.includes(`${name}.patch`));
  if (unknown.length > 0) {
    say(`test:faults: no such patch in test/faults/mutants: ${unknown.join(', ')}`);
    process.exit(2);
  }
  const missed = [];
  for (const file of wanted.length > 0 ? wanted.map((name) => `${name}.patch`) : all) {
    const copy = join(built, 'mutants', file.replace('.patch', ''));
    rmSync(join(copy, 'source'), { recursive: true, force: true });
    mkdirSync(join(copy, 'source'), { recursive: true });
    // cmake-js finds Node's headers by the package of the sources.
    symlinkSync(join(root, 'node_modules'), join(copy, 'source/node_modules'));
    for (const path of ['package.json', 'CMakeLists.txt', 'native', 'test/faults', 'test/native']) {
      cpSync(join(root, path), join(copy, 'source', path), { recursive: true });
    }
    const patch = join(patches, file);
    must('patch', ['-p1', '--silent', '-i', patch], { cwd: join(copy, 'source') });
    // A fault of native/binding needs JavaScript's threads.
    const isOfBinding = /^\+\+\+ b\/native\/binding/m.test(readFileSync(patch, 'utf8'));
    const programs = prepare([isOfBinding ? 'workers' : 'scenarios'], join(copy, 'source'), copy);
    const began = performance.now();
    const isOn = () => performance.now() - began < MUTANT_LIMIT_MS;
    const { failure, seeds } = await sweep(programs, firstSeed, isOn);
    const found = failure?.text.split('\n')[0];
    const result = failure
      ? `found by seed ${failure.seed} in ${seconds(began)} s: ${found}`
      : 'MISSED';
    say(`${file}: ${result}`);
    if (failure === undefined) missed.push(`${file} (${seeds} seeds)`);
  }
  if (missed.length > 0) say(`not found: ${missed.join(', ')}`);
  return missed.length === 0;
}

if (values.mutants) process.exit((await findMutants()) ? 0 : 1);

const names = values.only === undefined ? Object.keys(PROGRAMS) : [values.only];
const programs = prepare(names, root, built);
const began = performance.now();
const isOn = (seeds) => {
  if (values.quick) return seeds < QUICK_SEEDS;
  if (values.seed !== undefined && values.minutes === undefined) return seeds < 1;
  return performance.now() - began < minutes * 60_000;
};
const { failure, seeds } = await sweep(programs, firstSeed, isOn);
if (failure !== undefined) {
  say(failure.text);
  say(`\nSeed ${failure.seed} has failed, after ${seeds} seeds and ${seconds(began)} s. Again:`);
  say(`  node scripts/test-faults.mjs --only ${failure.name} --seed ${failure.seed}`);
  process.exit(1);
}
say(
  `${seeds} seeds (from ${firstSeed} on) of ${names.join(', ')} in ${seconds(began)} s: no failure`,
);
