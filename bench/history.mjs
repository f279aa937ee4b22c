/**
 * What an import and a call have cost by day of the history, in instructions, which do not depend
 * on how busy or quick the machine is: `npm run bench:history -- [COMMIT...]`
 *
 * Without a commit it counts the last one of each day that was not counted before, and the peers. Each
 * commit is checked out and compiled in build-history/. Writes bench/history/counts.json, which `npm
 * run bench` draws. Prints the table. Linux, with valgrind.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fetchPeers } from './peers.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = join(root, 'bench/history/counts.json');
const story = join(root, 'bench/history/story.mjs');
const folder = join(root, 'build-history');
const PEERS = ['piscina', 'workerpool'];
const MINUTES_20 = { timeout: 1_200_000, maxBuffer: 2 ** 26, encoding: 'utf8' };

const say = (text) => process.stderr.write(`${text}\n`);
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const run = (cwd, command, ...args) =>
  execFileSync(command, args, { cwd, ...MINUTES_20, stdio: 'pipe' });

/** Thousand instructions of a program. V8 compiles and collects in the thread that runs it. */
function instructions(...args) {
  const flags = ['--tool=callgrind', '--callgrind-out-file=/dev/null'];
  const program = [process.execPath, '--single-threaded', story, ...args.map(String)];
  const { stderr, status } = spawnSync('valgrind', [...flags, ...program], MINUTES_20);
  const total = /Collected : (\d+)/.exec(stderr)?.[1];
  if (status !== 0 || total === undefined) throw new Error(`valgrind has failed: ${stderr}`);
  return Number(total) / 1_000;
}

/**
 * Thousand instructions of the import of a pool, and of one call: of 800 one after the other from the
 * first on, and of 1,280 of which 64 run at once.
 *
 * @param {string} subject a `dist` folder, or the name of a peer
 */
function count(subject) {
  const start = instructions(subject, 'calls', 2);
  const each = (kind, calls) =>
    Math.round((instructions(subject, kind, calls) - start) / (calls - 2));
  return {
    import: Math.round(instructions(subject, 'import') - nothing()),
    alone: each('calls', 800),
    many: each('waves', 1_280),
  };
}

let empty;
/** Of a program that imports nothing. */
function nothing() {
  empty ??= instructions('nothing', 'import');
  return empty;
}

/** Checks the commit out and compiles it. @returns its `dist` folder */
function compiled(commit) {
  const tree = join(folder, commit);
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  execFileSync('bash', ['-c', `git archive ${commit} | tar -x -C "${tree}"`], { cwd: root });
  const lock = readFileSync(join(tree, 'package-lock.json'));
  const installed = join(folder, `modules-${createHash('sha1').update(lock).digest('hex')}`);
  if (existsSync(installed)) {
    run(tree, 'cp', '-al', installed, join(tree, 'node_modules'));
  } else {
    run(tree, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline');
    run(tree, 'cp', '-al', join(tree, 'node_modules'), installed);
  }
  run(tree, 'npm', 'run', 'compile');
  return join(tree, 'dist');
}

const known = existsSync(file)
  ? JSON.parse(readFileSync(file, 'utf8'))
  : { commits: {}, peers: {} };

function save() {
  const inOrder = Object.entries(known.commits).toSorted(([, one], [, other]) =>
    one.date.localeCompare(other.date),
  );
  known.commits = Object.fromEntries(inOrder);
  writeFileSync(`${file}.new`, `${JSON.stringify(known, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

function add(commit) {
  const short = git('rev-parse', '--short=8', `${commit}^{commit}`);
  if (known.commits[short] !== undefined) return;
  say(`${short}: ${git('log', '-1', '--format=%s', short)}`);
  const dist = compiled(short);
  const date = git('log', '-1', '--format=%cd', '--date=format:%Y-%m-%dT%H:%M', short);
  known.commits[short] = { date, ...count(dist) };
  save();
  rmSync(join(folder, short), { recursive: true });
}

/** The last commit of each day. */
function days() {
  const lines = git(
    'log',
    '--first-parent',
    '--format=%h %cd',
    '--date=format:%Y-%m-%d',
    '--abbrev=8',
  );
  const last = new Map();
  for (const line of lines.split('\n')) {
    const [commit, day] = line.split(' ');
    if (!last.has(day)) last.set(day, commit);
  }
  return [...last.values()].toReversed();
}

fetchPeers();
mkdirSync(folder, { recursive: true });
for (const peer of PEERS) {
  if (known.peers[peer] !== undefined) continue;
  known.peers[peer] = count(peer);
  save();
}
const chosen = process.argv.slice(2);
let failed = 0;
for (const commit of chosen.length > 0 ? chosen : days()) {
  try {
    add(commit);
  } catch (error) {
    say(`${commit}: ${(error.stderr || error.message).trim().split('\n').slice(-3).join(' / ')}`);
    failed += 1;
  }
}
const columns = ['import', 'alone', 'many'];
const row = (name, counts) =>
  `${name.padEnd(26)}${columns.map((each) => String(counts[each]).padStart(9)).join('')}\n`;
process.stdout.write(
  `${'thousand instructions'.padEnd(26)}${columns.map((each) => each.padStart(9)).join('')}\n`,
);
for (const [name, counts] of Object.entries(known.peers)) process.stdout.write(row(name, counts));
for (const [name, counts] of Object.entries(known.commits)) {
  process.stdout.write(row(`${counts.date} ${name}`, counts));
}
process.exitCode = failed === 0 ? 0 : 1;
