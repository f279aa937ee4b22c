/**
 * Counts what a change must not make dearer, and compares it with bench/guard/budget.json:
 * `npm run bench:guard`, with after `--`
 *
 *   --write              writes what it counts as the new budget
 *   --mutants [NAME...]  applies each patch of bench/guard/mutants to a copy, and expects an objection
 *
 * Counts do not depend on how busy or how quick the machine is: instructions and allocations of the
 * core by callgrind (native/counted.cc), and of an import, a worker and a call (guard/start.mjs);
 * messages between threads, bytes of the heap and system calls of a call (guard/calls.mjs). How messages and system calls fall depends on the order
 * of the threads, so these are the least of some runs. Linux with glibc; needs valgrind and strace (Debian packages of these
 * names).
 */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const budgetFile = join(root, 'bench/guard/budget.json');
const patches = join(root, 'bench/guard/mutants');
const built = join(root, 'build-guard');
const OPERATIONS = 1_000;
const RUNS = 3;
const RUNS_OF_BYTES = 9; // they differ by a tenth: V8 compiles and optimizes meanwhile
const SUBPROCESS = { timeout: 900_000, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 };
const SYSTEM_CALLS = 'getpid,read,write,epoll_pwait,epoll_wait,mmap,munmap,mprotect'.split(',');
/** Those that no call and no child has to make: what they tell does not change. */
const NEEDLESS = 'getpid,getppid,gettid,getuid,getrandom,clock_gettime,uname'.split(',');

/** By which share a count may exceed its budget. */
const TOLERANCE = {
  instructions: 0.05,
  allocations: 0.01,
  messages: 0.1,
  'thousand instructions': 0.15, // V8 decides when it compiles what
  'thousand instructions of an import': 0.1,
  'thousand instructions of a start': 0.3, // the main thread does more, the longer it waits
  'messages of many': 4, // how many results share a message depends on the order of the threads
  bytes: 0.05,
  'system calls': 0.5,
  'needless system calls': 0,
};

const say = (text) => process.stderr.write(`${text}\n`);
const run = (command, args, options) =>
  execFileSync(command, args, { ...SUBPROCESS, encoding: 'utf8', stdio: 'pipe', ...options });

/** @param {string} source the root of the checkout. @returns the folder of what callgrind runs */
function compileCounted(source) {
  const folder = join(source, 'bench/native/build'); // as for `npm run bench`
  run('cmake', ['-S', join(source, 'bench/native'), '-B', folder, '-DCMAKE_BUILD_TYPE=Release']);
  const jobs = String(availableParallelism());
  run('cmake', ['--build', folder, '--target', 'counted', 'mark', '--parallel', jobs]);
  return folder;
}

/** Runs a program. Returns what it prints, and the instructions of each part that it has ended. */
function underCallgrind(...program) {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-guard-'));
  const instructions = {};
  try {
    const flags = ['-q', '--tool=callgrind', `--callgrind-out-file=${join(folder, 'out')}`];
    const output = run('valgrind', [...flags, ...program]);
    for (const file of readdirSync(folder)) {
      const part = readFileSync(join(folder, file), 'latin1');
      const name = /^desc: Trigger: Client Request: (.+)$/m.exec(part)?.[1];
      if (name === undefined) continue; // the part up to the end of the program
      instructions[name] = Number(/^totals: (\d+)/m.exec(part)?.[1]);
    }
    return { output, instructions };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Instructions and allocations of each operation of the core. */
function countCore(source) {
  const program = join(compileCounted(source), 'counted');
  const { output, instructions } = underCallgrind(program, String(OPERATIONS));
  const allocations = JSON.parse(output);
  const counts = {};
  for (const [operation, total] of Object.entries(instructions)) {
    counts[`${operation}: instructions`] = Math.round(total / OPERATIONS);
    counts[`${operation}: allocations`] = Number(allocations[operation].toFixed(2));
  }
  return counts;
}

/** Thousand instructions of an import, of a worker, and of a call when it is new and when it is not. */
function countScripts(source) {
  const mark = join(compileCounted(source), 'mark.node');
  const script = join(source, 'bench/guard/start.mjs');
  // V8 compiles and collects in the thread that runs the program, and so at the same point.
  const program = [process.execPath, '--single-threaded', script, mark];
  // The least: a run was seen that counted 50 million more than others. Of two, as a run takes up to
  // a minute.
  const runs = [1, 2].map(() => underCallgrind(...program).instructions);
  const each = (part, times) =>
    Math.round(Math.min(...runs.map((parts) => parts[part])) / times / 1_000);
  const major = process.versions.node.split('.')[0];
  const name = (what) => `${what}, Node ${major}: thousand instructions`;
  return {
    [`${name('import')} of an import`]: each('import', 1),
    [`${name('a worker')} of a start`]: each('2 workers', 2),
    [name('one of the first 400 calls')]: each('400 calls', 398),
    [name('one of the next 1,200 calls')]: each('1600 calls', 1_200),
  };
}

/** How many system calls of each name a program makes. */
function systemCalls(...program) {
  const traced = new Set([...SYSTEM_CALLS, ...NEEDLESS]);
  const strace = ['-f', '--seccomp-bpf', '-qq', '-c', '-U', 'calls,name'];
  const args = [...strace, '-e', `trace=${[...traced].join()}`, process.execPath, ...program];
  const options = { ...SUBPROCESS, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] };
  const { stderr, status } = spawnSync('strace', args, options);
  const lines = [...stderr.matchAll(/^ *(\d+) +(\w+)$/gm)];
  if (status !== 0 || lines.length === 0) throw new Error(`strace has failed: ${stderr}`);
  return Object.fromEntries(lines.map(([, calls, name]) => [name, Number(calls)]));
}

const sum = (calls, names) => names.reduce((total, name) => total + (calls[name] ?? 0), 0);

/** What a call on two threads costs in messages, bytes and system calls. */
function countCalls(source) {
  const script = join(source, 'bench/guard/calls.mjs');
  const preload = ['--import', join(source, 'bench/guard/count-messages.mjs')];
  // So much young space that nothing is collected meanwhile.
  const space = ['--min-semi-space-size=64', '--max-semi-space-size=64'];
  const node = ['--expose-gc', ...space, ...preload, script];
  const runsOf = (waves, count) =>
    Array.from({ length: count }, () =>
      JSON.parse(run(process.execPath, [...node, waves, '5000'])),
    );
  const runs = runsOf('20', RUNS);
  const ofBytes = runsOf('0', RUNS_OF_BYTES).map(({ bytes }) => bytes);
  const leastOf = (key) => Math.min(...runs.map((one) => one[key]));
  const children = join(source, 'bench/guard/children.mjs');
  const pairs = (program, from, to) =>
    Array.from({ length: RUNS }, () =>
      [from, to].map((times) => systemCalls(...program, String(times))),
    );
  const each = (ofPairs, names, times) => {
    const more = ofPairs.map(([few, many]) => sum(many, names) - sum(few, names));
    return Number((Math.min(...more) / times).toFixed(1));
  };
  const ofCalls = pairs([...node, '0'], 500, 2_500);
  const ofChildren = pairs([children], 500, 1_500);
  const major = process.versions.node.split('.')[0];
  return {
    'a call alone: messages': leastOf('tripMessages'),
    'a call of 1,000: messages of many': Number(leastOf('waveMessages').toFixed(4)),
    // More where V8 has compiled the code late, fewer where it has collected garbage after all.
    [`a call alone, Node ${major}: bytes`]: Math.round(
      ofBytes.toSorted((one, other) => one - other)[RUNS_OF_BYTES >> 1],
    ),
    'a call alone: system calls': each(ofCalls, SYSTEM_CALLS, 2_000),
    'a call alone: needless system calls': each(ofCalls, NEEDLESS, 2_000),
    'a child with its signal: needless system calls': each(ofChildren, NEEDLESS, 1_000),
  };
}

/** What has become dearer than the budget allows, a line each. */
function objections(counts, budget) {
  const found = [];
  for (const [name, most] of Object.entries(budget)) {
    const counted = counts[name];
    if (counted === undefined) {
      // The heap of another version of V8 is not in the budget.
      if (!/Node \d+/.test(name)) found.push(`${name}: was not counted`);
      continue;
    }
    const tolerance = TOLERANCE[name.split(': ').at(-1)];
    const share = most === 0 ? Number(counted > 0) : counted / most - 1;
    const text = `${name}: ${counted}, of ${most}`;
    if (share > tolerance) found.push(`${text}: ${(share * 100).toFixed(0)} % dearer`);
    else if (share < -tolerance) say(`${text}: cheaper; --write lowers the budget`);
  }
  for (const name of Object.keys(counts)) {
    if (!(name in budget) && !/Node \d+/.test(name)) found.push(`${name}: has no budget`);
  }
  return found;
}

const readBudget = () => JSON.parse(readFileSync(budgetFile, 'utf8'));

/** The quickest first. */
const PARTS = [countCore, countCalls, countScripts];
const count = (source) => Object.assign({}, ...PARTS.map((part) => part(source)));

/** Those to the first part that has any. */
function firstObjections(source) {
  const budget = Object.entries(readBudget());
  for (const part of PARTS) {
    const counts = part(source);
    const own = budget.filter(([name]) => name in counts);
    const found = objections(counts, Object.fromEntries(own));
    if (found.length > 0) return found;
  }
  return [];
}

/** Runs the guard on a copy with the patch. Returns its objections. */
function objectionsToMutant(patch) {
  const copy = join(built, basename(patch, '.patch'));
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { recursive: true });
  const left = new Set(['node_modules', '.git', 'dist']);
  for (const entry of readdirSync(root)) {
    if (left.has(entry) || entry.startsWith('build-')) continue;
    const filter = (from) =>
      !from.includes(`${sep}build${sep}`) && basename(from) !== 'node_modules';
    cpSync(join(root, entry), join(copy, entry), { recursive: true, filter });
  }
  for (const shared of ['node_modules', 'build-cmake']) {
    symlinkSync(join(root, shared), join(copy, shared));
  }
  run('patch', ['-p1', '-i', join(patches, patch)], { cwd: copy });
  run(process.execPath, ['scripts/compile.mjs', 'ts'], { cwd: copy });
  const found = firstObjections(copy);
  rmSync(copy, { recursive: true });
  return found;
}

function findMutants(wanted) {
  const known = readdirSync(patches).filter((file) => file.endsWith('.patch'));
  const chosen = known.filter(
    (file) => wanted.length === 0 || wanted.includes(basename(file, '.patch')),
  );
  if (chosen.length < Math.max(1, wanted.length)) {
    say(
      `There is no such mutant; known: ${known.map((file) => basename(file, '.patch')).join(', ')}`,
    );
    return 2;
  }
  let missed = 0;
  for (const patch of chosen) {
    const found = objectionsToMutant(patch);
    say(`${patch}: ${found.length === 0 ? 'NOT FOUND' : found.join('; ')}`);
    if (found.length === 0) missed += 1;
  }
  return missed === 0 ? 0 : 1;
}

function guard(isWriting) {
  const counts = count(root);
  if (isWriting) {
    writeFileSync(budgetFile, `${JSON.stringify(counts, null, 2)}\n`);
    say(`wrote ${budgetFile}`);
    return 0;
  }
  const found = objections(counts, readBudget());
  for (const [name, value] of Object.entries(counts)) process.stdout.write(`${name}: ${value}\n`);
  for (const each of found) say(`DEARER: ${each}`);
  if (found.length > 0) {
    say(
      'If the change is worth it, `npm run bench:guard -- --write` raises the budget; say why in the commit.',
    );
  }
  return found.length === 0 ? 0 : 1;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean' }, mutants: { type: 'boolean' } },
});
if (!existsSync(resolve(root, 'dist/index.js'))) {
  say('Run `npm run compile` first');
  process.exitCode = 2;
} else if (positionals.length > 0 && !values.mutants) {
  say(`What is ${positionals[0]}? Names of mutants come after --mutants`);
  process.exitCode = 2;
} else {
  process.exitCode = values.mutants ? findMutants(positionals) : guard(values.write === true);
}
