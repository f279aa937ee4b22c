/** The benchmarks in C and C++: runs the programs of native/ and turns their output into rows. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { quick, report } from './rounds.mjs';

const build = fileURLToPath(new URL('./native/build/', import.meta.url));

function run(program, ...args) {
  const output = execFileSync(build + program, args, { maxBuffer: 2 ** 26, encoding: 'utf8' });
  return JSON.parse(output);
}

function shouldStop() {
  if (!existsSync(`${build}should_stop`)) return [];
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
  const row = (what, name) => ({
    what,
    peerName: '`std::stop_token::stop_requested`',
    unit: 'ns',
    ours: checks(name),
    peer: checks('StopToken'),
    goal: { ratio: 1 },
  });
  return [
    row('C `allstop_should_stop`, inline', 'C'),
    row('C++ `Coordinator::ShouldStop`, inline', 'Cpp'),
  ];
}

function wakeWaiters(waiters) {
  return {
    what: `native request → ${waiters} native waiter${waiters === 1 ? '' : 's'} awake`,
    peerName: 'bare condition variable',
    unit: 'µs',
    goal: { ratio: 1.1 },
    ...run('wake_waiters', waiters, quick ? 2 : 31, quick ? 3 : 61),
  };
}

function coreCost() {
  const [small, large] = quick ? [500, 1000] : [5000, 10_000];
  const cost = run('core_cost', quick ? 2 : 15, small, large);
  const rows = Object.entries(cost.costs).map(([operation, values]) => ({
    what: `core, ${large.toLocaleString('en')} of: ${operation}`,
    peerName: `the same with ${small.toLocaleString('en')}`,
    unit: 'ns each',
    ours: values.large,
    peer: values.small,
    goal: { flat: true },
  }));
  if (cost.bytes === null) return rows;
  const bytes = {
    what: `core, memory of a coordinator (of ${large.toLocaleString('en')}; the object itself: ${cost.sizeof} bytes)`,
    unit: 'bytes',
    ours: cost.bytes,
    goal: { atMost: 1024 },
  };
  return [bytes, ...rows];
}

function queue(producers, consumers) {
  const items = quick ? 4_000 : 400_000;
  const { ours, mutex, spin } = run('queue', producers, consumers, items, quick ? 2 : 31);
  const threads = `${producers} to ${consumers} thread${producers + consumers === 2 ? '' : 's'}`;
  const row = (peerName, peer, ratio) => ({
    what: `queue, C++ → C++, ${threads}, one item at a time`,
    peerName,
    unit: 'ns an item',
    ours,
    peer,
    goal: { ratio },
  });
  return [
    row('`std::mutex`, `std::deque` and condition variables', mutex, 1),
    row('a queue that spins (as rigtorp’s MPMCQueue)', spin, 3),
  ];
}

report([
  ...shouldStop(),
  ...[1, 8, 64].map(wakeWaiters),
  ...queue(1, 1),
  ...queue(4, 4),
  ...coreCost(),
]);
