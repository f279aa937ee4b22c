/**
 * Measures all rows of rows.mjs beside their peers and writes docs/benchmarks.md with its pictures:
 * `npm run bench`, with after `--`
 *
 *   --row NAME      only this row, or the rows whose names begin with NAME/; again for more of
 *                   them. Prints them and writes nothing
 *   --list          names the rows
 *   --output FILE   writes the page there, and its pictures beside it, also while others use the
 *                   machine
 *   --quick         sees whether everything still runs; the numbers mean nothing and are not
 *                   written. Exit code 1 if a benchmark fails
 *
 * Each benchmark runs in a process of its own, so that none is affected by code, garbage or threads
 * of another. One that fails is reported in the page, and the others go on; the exit code is 1.
 */

import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { charts } from './report/charts.mjs';
import { environment } from './report/environment.mjs';
import { page } from './report/page.mjs';
import { BUSY, useOfOthers } from './report/quiet.mjs';
import { table } from './report/table.mjs';
import { ROWS, SECTIONS } from './rows.mjs';

const TIMEOUT_MS = 600_000; // a benchmark that hangs counts as failed
const QUIET_S = 60; // for what a benchmark has left behind, and for what others do meanwhile

const root = fileURLToPath(new URL('..', import.meta.url));
const official = join(root, 'docs/benchmarks.md');
const disturbed = join(root, 'build-benchmarks/benchmarks.md');

const say = (text) => process.stderr.write(`${text}\n`);

class UsageError extends Error {}

function parse() {
  const options = {
    row: { type: 'string', multiple: true },
    list: { type: 'boolean' },
    output: { type: 'string' },
    quick: { type: 'boolean' },
  };
  let values;
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new UsageError(error.message.split('. ')[0]);
  }
  if (values.output !== undefined && (values.quick || values.row !== undefined)) {
    throw new UsageError('--output writes the whole page: it goes with neither --row nor --quick');
  }
  return values;
}

function choose(names) {
  if (names === undefined) return ROWS;
  for (const name of names) {
    if (!ROWS.some((row) => isNamed(row, name))) {
      throw new UsageError(`There is no row ${name}: see \`npm run bench -- --list\``);
    }
  }
  return ROWS.filter((row) => names.some((name) => isNamed(row, name)));
}

const isNamed = (row, name) => row.name === name || row.name.startsWith(`${name}/`);

function build() {
  if (!existsSync(join(root, 'dist/index.js'))) throw new UsageError('Run `npm run compile` first');
  const run = (command, ...args) => {
    try {
      execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      say(`${error.stdout ?? ''}${error.stderr ?? ''}`);
      throw error;
    }
  };
  say('building');
  run('npx', 'cmake-js', 'compile', '-d', 'bench/addon');
  run('cmake', '-S', 'bench/native', '-B', 'bench/native/build', '-DCMAKE_BUILD_TYPE=Release');
  run('cmake', '--build', 'bench/native/build', '--parallel', String(availableParallelism()));
}

/** Why a benchmark has failed, in one line. */
function reasonOf(error) {
  if (error.killed) return `no end after ${TIMEOUT_MS / 1_000} s`;
  const lines = (error.stderr || error.message).trim().split('\n');
  return lines.find((line) => /Error\b/.test(line)) ?? lines.at(-1);
}

/** What the benchmark reports of the rows. @returns {Promise<Map<string, object>>} by name */
async function measure(runner, rows, isQuick) {
  const file = join(root, `bench/${runner}.mjs`);
  const names = rows.map(({ name }) => name).join(',');
  const args = ['--expose-gc', file, `--rows=${names}`, ...(isQuick ? ['--quick'] : [])];
  const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, options);
    if (stderr !== '') say(stderr.trimEnd());
    const reported = JSON.parse(stdout);
    return new Map(rows.flatMap(({ name }) => (name in reported ? [[name, reported[name]]] : [])));
  } catch (error) {
    if (error.stderr) say(error.stderr.trimEnd());
    const failed = reasonOf(error).replaceAll('|', '/').slice(0, 200);
    say(`FAILED: ${runner}: ${failed}`);
    return new Map(rows.map(({ name }) => [name, { failed }]));
  }
}

/**
 * Measures the rows, runner by runner. With `isWatched` it waits for a quiet machine before each,
 * and repeats one after which the machine is busy.
 * @returns {Promise<{ results: Map<string, object>, use: number }>} `use`: processors used by others
 */
async function measureAll(rows, { isQuick, isWatched }) {
  const results = new Map();
  let use = 0;
  let watches = isWatched;
  for (const runner of new Set(rows.map((row) => row.runner))) {
    const own = rows.filter((row) => row.runner === runner);
    let after = 0;
    for (let attempt = 1; attempt <= 2; attempt++) {
      const start = performance.now();
      const found = await measure(runner, own, isQuick);
      for (const [name, result] of found) results.set(name, result);
      say(`${runner}: ${((performance.now() - start) / 1_000).toFixed(1)} s`);
      if (isQuick) break;
      after = await useOfOthers(watches ? QUIET_S : 1);
      if (!watches || after < BUSY) break;
      say(`Others use ${after.toFixed(2)} processors: ${runner} is measured again`);
    }
    use = Math.max(use, after);
    if (use >= BUSY) watches = false; // the page will not be written: no more waiting
  }
  return { results, use };
}

async function write(file, results, run) {
  const folder = basename(file, '.md');
  const drawn = await charts(ROWS, results);
  const pictures = join(dirname(file), folder);
  rmSync(pictures, { recursive: true, force: true });
  mkdirSync(pictures, { recursive: true });
  for (const [name, svg] of drawn) writeFileSync(join(pictures, `${name}.svg`), svg);
  writeFileSync(file, page(SECTIONS, results, { ...run, folder, drawn }));
  say(`wrote ${file}`);
}

async function main() {
  const { row: names, list, output, quick: isQuick } = parse();
  const rows = choose(names);
  if (list) {
    process.stdout.write(rows.map(({ name, what }) => `${name.padEnd(36)}${what}\n`).join(''));
    return 0;
  }
  const writes = !isQuick && names === undefined;
  const isWatched = writes && output === undefined;
  build();
  if (isWatched) {
    const use = await useOfOthers(QUIET_S);
    if (use >= BUSY) {
      say(
        `Others use ${use.toFixed(2)} processors of this machine: nothing was measured or written. ` +
          'Run it when they do not, or with --output FILE',
      );
      return 1;
    }
  }
  const run = { environment: environment() };
  const start = performance.now();
  const { results, use } = await measureAll(rows, { isQuick, isWatched });
  run.minutes = (performance.now() - start) / 60_000;
  run.use = use;
  if (isWatched && use >= BUSY) {
    await write(disturbed, results, run);
    say(
      `Others used ${use.toFixed(2)} processors meanwhile: docs/benchmarks.md is as it was. Run it again`,
    );
    return 1;
  }
  if (writes) {
    await write(output === undefined ? official : resolve(output), results, run);
  } else {
    const measured = rows.filter(({ name }) => results.has(name));
    process.stdout.write(`${table(measured, results)}\n`);
  }
  const failed = rows.filter(({ name }) => results.get(name)?.failed !== undefined);
  const missing = isQuick ? [] : rows.filter(({ name }) => !results.has(name));
  for (const { name } of [...failed, ...missing]) say(`not measured: ${name}`);
  return failed.length + missing.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
