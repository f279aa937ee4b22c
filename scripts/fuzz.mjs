// Fuzzes what reads bytes of others, and sequences of calls of the C table:
//   npm run fuzz                                   one minute, divided among all targets
//   npm run fuzz -- --minutes 60 --target abi      an hour of one target (may be repeated)
//   npm run fuzz -- --target abi FILE...           runs these inputs only
// The C++ targets are libFuzzer's programs, under AddressSanitizer and UBSan; those in TypeScript
// run in scripts/fuzz/loop.mjs. Inputs that show something new are kept in build-fuzz/corpus, and
// the next run goes on from there. An input that shows a fault is in build-fuzz/faults, and the
// exit code is 1. docs/testing.md says what becomes of it.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { bundleTarget } from './fuzz/instrument.mjs';

const root = resolve(import.meta.dirname, '..');
const out = join(root, 'build-fuzz');
const say = (line) => process.stdout.write(`${line}\n`);

const NATIVE = ['abi', 'encoded-error', 'threads'];
const JAVASCRIPT = [
  'cluster-spec',
  'control-messages',
  'errors',
  'frames',
  'session-messages',
  'values',
];
/** In milliseconds: a target that says nothing for so long hangs. */
const HANGS_MS = 30_000;
const LONGEST_INPUT = 1024;

const { values, positionals: inputs } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '1' },
    target: { type: 'string', multiple: true },
    seed: { type: 'string', default: `${Date.now() % 2 ** 31}` },
  },
});
const targets = values.target ?? [...JAVASCRIPT, ...NATIVE];
const seconds = (Number(values.minutes) * 60) / targets.length;
const isKnown = targets.every((name) => NATIVE.includes(name) || JAVASCRIPT.includes(name));
if (!isKnown || !(seconds > 0) || (inputs.length > 0 && targets.length !== 1)) {
  say('Usage: npm run fuzz -- [--minutes N] [--target NAME]... [--seed N]');
  say('       npm run fuzz -- --target NAME INPUT_FILE...');
  say(`Targets: ${[...JAVASCRIPT, ...NATIVE].join(', ')}`);
  process.exit(2);
}

const folderOf = (kind, name) => {
  const folder = kind === 'new' ? join(out, 'corpus', name) : join(root, 'test/fuzz', kind, name);
  if (kind === 'new') mkdirSync(folder, { recursive: true });
  return folder;
};
/** The seeds, and the inputs that have shown a fault before. */
const seedsOf = (name) =>
  ['corpus', 'regressions'].map((kind) => folderOf(kind, name)).filter((path) => existsSync(path));

function buildNative() {
  const folder = join(out, 'native');
  const clang = ['clang++', 'clang++-14'].find(
    (name) => spawnSync(name, ['--version']).status === 0,
  );
  if (clang === undefined) {
    say('The C++ targets need clang with libFuzzer (Debian: clang libclang-rt-14-dev).');
    process.exit(1);
  }
  const configure = ['-S', '.', '-B', folder, '-DALLSTOP_FUZZ=ON', `-DCMAKE_CXX_COMPILER=${clang}`];
  configure.push(`-DCMAKE_C_COMPILER=${clang.replace('++', '')}`);
  for (const args of [configure, ['--build', folder, '-j', `${availableParallelism()}`]]) {
    const { status, stdout, stderr } = spawnSync('cmake', args, { cwd: root, encoding: 'utf8' });
    if (status === 0) continue;
    say(`${stdout}${stderr}cmake has failed`);
    process.exit(1);
  }
}

/** Runs a program, with each line of its output to `onLine`. @returns the exit code */
async function run(program, args, options, onLine) {
  const child = spawn(program, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, UBSAN_OPTIONS: 'print_stacktrace=1', ...options.env },
  });
  let hangs = false;
  const killed = () => {
    hangs = true;
    child.kill('SIGKILL');
  };
  let timer = setTimeout(killed, HANGS_MS);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      clearTimeout(timer);
      timer = setTimeout(killed, HANGS_MS);
      onLine(line, stream === child.stdout);
    });
  }
  const [code, signal] = await new Promise((settle, reject) => {
    child.once('error', reject).once('close', (...ended) => settle(ended));
  });
  clearTimeout(timer);
  return hangs ? `it hung for ${HANGS_MS / 1000} s` : (signal ?? code);
}

/** Writes an input that shows a fault. @returns its path */
function saveFault(name, input) {
  const folder = join(out, 'faults');
  mkdirSync(folder, { recursive: true });
  const hash = createHash('sha1').update(input).digest('hex').slice(0, 16);
  const path = join(folder, `${name}-${hash}`);
  writeFileSync(path, input);
  return path;
}

/** @returns what was seen, and `fault`: the text of a fault with the path of its input */
async function fuzzNative(name) {
  const program = join(out, 'native/test/fuzz/native', `fuzz_${name.replace('-', '_')}`);
  const prefix = join(out, 'faults', `${name}-`);
  mkdirSync(join(out, 'faults'), { recursive: true });
  const lines = [];
  const found = { executions: 0, covered: 0, features: 0, added: 0 };
  let path = inputs[0];
  const corpora = [folderOf('new', name), ...seedsOf(name)];
  const options = [
    `-max_total_time=${Math.max(1, Math.round(seconds))}`,
    `-seed=${values.seed}`,
    `-max_len=${LONGEST_INPUT}`,
    '-timeout=10',
    '-rss_limit_mb=2048',
  ];
  const args = inputs.length > 0 ? inputs : [...options, ...corpora];
  const code = await run(
    program,
    [...args, `-artifact_prefix=${prefix}`, '-print_final_stats=1'],
    {},
    (line) => {
      const progress = /^#\d+\s.*cov: (\d+) ft: (\d+)/.exec(line);
      const stat = /^stat::(\w+):\s+(\d+)/.exec(line);
      if (progress !== null) [found.covered, found.features] = progress.slice(1).map(Number);
      else if (stat?.[1] === 'number_of_executed_units') found.executions = Number(stat[2]);
      else if (stat?.[1] === 'new_units_added') found.added = Number(stat[2]);
      else if (!/^(#\d|INFO:|###|")/.test(line)) lines.push(line);
      path = /Test unit written to (.*)/.exec(line)?.[1] ?? path;
    },
  );
  if (code === 0) return found;
  return { ...found, path, fault: `${lines.slice(0, 60).join('\n')}\n(${code})` };
}

async function fuzzJavaScript(name) {
  // The code finds package.json and the addon from a folder right below the package's.
  const bundle = await bundleTarget(name, out);
  const current = join(out, `${name}.current`);
  const job = {
    bundle: bundle.path,
    branches: bundle.branches,
    literals: bundle.literals,
    corpus: folderOf('new', name),
    seeds: seedsOf(name),
    inputs: inputs.map((path) => resolve(path)),
    current,
    seconds,
    seed: Number(values.seed),
  };
  writeFileSync(join(out, `${name}.json`), JSON.stringify(job));
  writeFileSync(current, Buffer.alloc(4)); // an empty input, until the loop has begun
  const loop = join(root, 'scripts/fuzz/loop.mjs');
  const heap = ['--max-old-space-size=4096', '--no-warnings'];
  let last = {};
  const errors = [];
  const args = [...heap, loop, join(out, `${name}.json`)];
  const code = await run(process.execPath, args, {}, (line, isReport) => {
    if (isReport && line.startsWith('{')) last = JSON.parse(line);
    else errors.push(line);
  });
  const found = { ...last, of: bundle.branches };
  if (code === 0 && last.isDone) return found;
  const bytes = readFileSync(current);
  const input = bytes.subarray(4, 4 + bytes.readUInt32LE(0));
  const path = saveFault(name, input);
  return { ...found, path, fault: last.fault ?? `${errors.slice(0, 40).join('\n')}\n(${code})` };
}

if (inputs.length === 0) rmSync(join(out, 'faults'), { recursive: true, force: true });
if (targets.some((name) => NATIVE.includes(name))) buildNative();
if (targets.some((name) => JAVASCRIPT.includes(name))) {
  const compile = spawnSync(process.execPath, ['scripts/compile.mjs', 'addon'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (compile.status !== 0) process.exit(1);
}
say(`Seed ${values.seed}; ${Math.round(seconds)} s for each target`);
let faults = 0;
for (const name of targets) {
  const started = Date.now();
  const found = await (NATIVE.includes(name) ? fuzzNative(name) : fuzzJavaScript(name));
  const { executions = 0, covered = 0, of, features = 0, added = 0, fault, path } = found;
  const took = ((Date.now() - started) / 1000).toFixed(1);
  const branches = of === undefined ? `${covered} edges` : `${covered} of ${of} branches`;
  say(
    `${name}: ${executions} executions, ${branches}, ${features} features, ${added} new inputs, ${took} s`,
  );
  if (fault === undefined) continue;
  faults += 1;
  say(`${fault}\nFAULT in ${name}. The input: ${path}`);
  say(`To repeat it: npm run fuzz -- --target ${name} ${path}`);
}
say(faults === 0 ? 'No fault was found' : `${faults} of ${targets.length} targets found a fault`);
process.exit(faults === 0 ? 0 : 1);
