/**
 * Runs all benchmarks: `npm run bench`. Each file runs in a process of its own, so that none is
 * affected by code, garbage or threads of another.
 *
 *   node bench/run.mjs            writes the table of docs/benchmarks.md
 *   node bench/run.mjs --quick    checks that everything still runs; writes nothing
 *   node bench/run.mjs spawn ...  runs only these files; writes nothing
 */

import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { quick } from './rounds.mjs';
import { environment, table } from './table.mjs';

const FILES = [
  'should-stop',
  'native',
  'wake-workers',
  'promise-latency',
  'join-latency',
  'spawn',
  'load',
  'queue',
  'queue-stop',
  'queue-memory',
  'signal',
  'cluster',
  'payloads',
  'cluster-memory',
  'cluster-map',
  'nats',
  'slow-links',
  'idle-cost',
  'scale',
];
const TIMEOUT_MS = 900_000; // a benchmark that hangs counts as failed

const root = fileURLToPath(new URL('..', import.meta.url));
const report = `${root}docs/benchmarks.md`;

function say(text) {
  process.stderr.write(`${text}\n`);
}

function build() {
  if (!existsSync(`${root}dist/index.js`)) throw new Error('Run `npm run compile` first');
  const run = (command, ...args) => {
    try {
      execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      say(error.stdout + error.stderr);
      throw error;
    }
  };
  say('building');
  run('npx', 'cmake-js', 'compile', '-d', 'bench/addon');
  run('cmake', '-S', 'bench/native', '-B', 'bench/native/build', '-DCMAKE_BUILD_TYPE=Release');
  run('cmake', '--build', 'bench/native/build', '--parallel', String(availableParallelism()));
}

async function rowsOf(file) {
  say(file);
  const args = ['--expose-gc', `${root}bench/${file}.mjs`, ...(quick ? ['--quick'] : [])];
  const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, options);
  if (stderr !== '') say(stderr);
  return JSON.parse(stdout);
}

const chosen = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const unknown = chosen.filter((name) => !FILES.includes(name));
if (unknown.length > 0) {
  throw new Error(`Unknown benchmarks: ${unknown.join(' ')}. Known: ${FILES.join(' ')}`);
}

build();
const before = environment();
const rows = [];
for (const file of chosen.length > 0 ? chosen : FILES) rows.push(...(await rowsOf(file)));

const text = table(rows, before, environment());
process.stdout.write(text);
if (!quick && chosen.length === 0) {
  // Replace only the table: the text around it is written by hand.
  const [head, , tail] = readFileSync(report, 'utf8').split(/(<!-- table -->.*<!-- end -->)/s);
  writeFileSync(report, `${head}<!-- table -->\n\n${text}\n<!-- end -->${tail}`);
  say(`wrote ${report}`);
}
