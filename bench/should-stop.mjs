/**
 * The cost of one check for a stop in a hot JavaScript loop.
 *
 * The coordinator and the AbortSignal are fields of an object, as in a typical class, and the body
 * of the loop calls functions that the compiler does not inline.
 *
 * Measured in several processes: the position of the compiled loops in memory differs by chance
 * from one process to the next, and changes the result by a few percent.
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Bench } from 'tinybench';
import { Coordinator } from '../dist/index.js';
import { quick, report } from './rounds.mjs';

// Few enough that most samples are not interrupted by other processes, and enough for the
// resolution of the clock.
const CHECKS = 20_000;
const PROCESSES = quick ? 2 : 15;
const ROUNDS = quick ? 1 : 5; // in each process
const SAMPLES = quick ? 20 : 200;

// Eight functions called in turn are more than the compiler inlines. If it inlined the body, it
// could see that nothing in the loop changes `aborted`, and read it only once, before the loop.
const steps = [
  (hash, i) => Math.imul(hash ^ i, 0x9e3779b1),
  (hash, i) => Math.imul(hash ^ i, 0x85ebca6b),
  (hash, i) => Math.imul(hash + i, 0xc2b2ae35),
  (hash, i) => Math.imul(hash - i, 0x27d4eb2f),
  (hash, i) => Math.imul(hash | i, 0x165667b1),
  (hash, i) => Math.imul(hash & ~i, 0x9e3779b9),
  (hash, i) => Math.imul(hash ^ ~i, 0x7feb352d),
  (hash, i) => Math.imul(hash + ~i, 0x846ca68b),
];

class Ours {
  constructor(coordinator) {
    this.coordinator = coordinator;
  }

  run() {
    let hash = 1;
    for (let i = 0; i < CHECKS; i++) {
      if (this.coordinator.shouldStop()) break;
      hash = steps[i & 7](hash, i);
    }
    return hash;
  }
}

class Peer {
  constructor(signal) {
    this.signal = signal;
  }

  run() {
    let hash = 1;
    for (let i = 0; i < CHECKS; i++) {
      if (this.signal.aborted) break;
      hash = steps[i & 7](hash, i);
    }
    return hash;
  }
}

/** The same loop without a check. The difference to the others is the cost of the check. */
class Unchecked {
  constructor(end) {
    this.end = end;
  }

  run() {
    let hash = 1;
    for (let i = 0; i < this.end; i++) hash = steps[i & 7](hash, i);
    return hash;
  }
}

/** Nanoseconds per iteration, one number for each round. */
function measure() {
  const subjects = {
    ours: new Ours(new Coordinator()),
    peer: new Peer(new AbortController().signal),
    unchecked: new Unchecked(CHECKS),
  };
  const values = { ours: [], peer: [], unchecked: [] };
  let sink = 0; // uses the results, so that the compiler cannot drop the work
  for (let round = -1; round < ROUNDS; round++) {
    const bench = new Bench({ iterations: SAMPLES, time: 0, warmup: false });
    for (const [name, subject] of Object.entries(subjects)) {
      bench.add(name, () => {
        sink ^= subject.run();
      });
    }
    bench.runSync();
    if (round < 0) continue; // round -1 lets V8 compile the loops
    for (const { name, result } of bench.tasks) {
      values[name].push((result.latency.p50 * 1e6) / CHECKS);
    }
  }
  if (sink === 0.5) throw new Error('unreachable');
  return values;
}

function measureInProcesses() {
  const all = { ours: [], peer: [], unchecked: [] };
  const args = [fileURLToPath(import.meta.url), '--one', ...(quick ? ['--quick'] : [])];
  for (let i = 0; i < PROCESSES; i++) {
    const one = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    for (const name of Object.keys(all)) all[name].push(...one[name]);
  }
  return all;
}

if (process.argv.includes('--one')) {
  report(measure());
} else {
  const { ours, peer, unchecked } = measureInProcesses();
  report({ 'should-stop/js': { ours, peer }, 'should-stop/unchecked': { ours: unchecked } });
}
