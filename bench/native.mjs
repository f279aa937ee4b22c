/** The benchmarks in C and C++: runs the programs of native/ and turns their output into rows. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { quick, report, wants } from './rounds.mjs';

const build = fileURLToPath(new URL('./native/build/', import.meta.url));
const rows = {};

function run(program, ...args) {
  const output = execFileSync(build + program, args, { maxBuffer: 2 ** 26, encoding: 'utf8' });
  return JSON.parse(output);
}

function shouldStop() {
  if (!existsSync(`${build}should_stop`)) {
    process.stderr.write('Google Benchmark is not installed (Debian: libbenchmark-dev)\n');
    return;
  }
  // Google Benchmark interleaves the repetitions of ours and the peer itself.
  const { benchmarks } = run(
    'should_stop',
    '--benchmark_format=json',
    '--benchmark_enable_random_interleaving=true',
    `--benchmark_repetitions=${quick ? 2 : 31}`,
    `--benchmark_min_time=${quick ? 0.01 : 0.05}`,
  );
  const checks = (name) =>
    benchmarks
      .filter((entry) => entry.name === name && entry.run_type === 'iteration')
      .map((entry) => 1e9 / entry.items_per_second); // nanoseconds of processor time
  const peer = checks('StopToken');
  rows['should-stop/c'] = { ours: checks('C'), peer };
  rows['should-stop/cpp'] = { ours: checks('Cpp'), peer };
}

function queue(producers, consumers) {
  const items = quick ? 4_000 : 400_000;
  const threads = `${producers}-${consumers}`;
  const { ours, mutex, spin } = run('queue', producers, consumers, items, quick ? 2 : 31);
  rows[`queue/native-${threads}-mutex`] = { ours, peer: mutex };
  rows[`queue/native-${threads}-spin`] = { ours, peer: spin };
}

function coreCost() {
  const costs = {};
  for (const [small, large] of quick
    ? [[500, 1_000]]
    : [
        [1_250, 2_500],
        [5_000, 10_000],
      ]) {
    const cost = run('core_cost', quick ? 2 : 15, small, large);
    if (cost.bytes !== null) rows['core/bytes'] = { ours: cost.bytes };
    for (const [operation, values] of Object.entries(cost.costs)) {
      costs[operation] = [
        ...(costs[operation] ?? []),
        [small, values.small],
        [large, values.large],
      ];
    }
  }
  for (const [operation, sizes] of Object.entries(costs)) {
    rows[`core/${operation}`] = { ours: sizes.at(-1)[1], peer: sizes.at(-2)[1], sizes };
  }
}

if (wants('should-stop/c') || wants('should-stop/cpp')) shouldStop();
for (const waiters of [1, 8, 64]) {
  const name = `wake/native-${waiters}`;
  if (wants(name)) rows[name] = run('wake_waiters', waiters, quick ? 2 : 31, quick ? 3 : 61);
}
for (const threads of [1, 4]) {
  const name = `queue/native-${threads}-${threads}`;
  if (wants(`${name}-mutex`) || wants(`${name}-spin`)) queue(threads, threads);
}
if (['bytes', 'coordinator', 'child', 'thread'].some((name) => wants(`core/${name}`))) coreCost();
report(rows);
