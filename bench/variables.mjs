/**
 * Variables of worker threads, in the coordinator: an `assignAdd` of a number beside a bare
 * `Atomics.add`, beside one in an async function, and a read of 40 MB beside a bare copy.
 *
 * A bare `Atomics.add` is one instruction in compiled code. An `assignAdd`
 * is a call of the addon, for the lock must not be held by JavaScript, whose thread may be ended at
 * any instruction; and it returns a promise. Prints nanoseconds, the median of the rounds.
 */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { quick, report } from './rounds.mjs';
import { median } from './statistics.mjs';

const ROUNDS = quick ? 2 : 15;
const ADDS = quick ? 1_000 : 100_000;
const FLOATS = quick ? 1_000 : 5_000_000;

async function nanoseconds(times, body) {
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    await body();
    rounds.push(((performance.now() - start) / times) * 1e6);
  }
  return median(rounds);
}

const module = new URL('../test/fixtures/cluster-variables.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
const sum = await cluster.variable('sum', 0);
const word = new Int32Array(new SharedArrayBuffer(4));
const bareAdd = async () => {
  Atomics.add(word, 0, 1);
};
const large = await cluster.variable('large', new Float64Array(FLOATS));
const source = new Float64Array(FLOATS);

const rows = {
  bare: await nanoseconds(ADDS, () => {
    for (let add = 0; add < ADDS; add++) Atomics.add(word, 0, 1);
  }),
  'bare, in an async function': await nanoseconds(ADDS, async () => {
    for (let add = 0; add < ADDS; add++) await bareAdd();
  }),
  assignAdd: await nanoseconds(ADDS, async () => {
    for (let add = 0; add < ADDS; add++) await sum.assignAdd(1);
  }),
  'copy of 40 MB': await nanoseconds(1, () => source.slice()),
  'read of 40 MB': await nanoseconds(1, () => large.read()),
};
report(rows);
await cluster.close();
