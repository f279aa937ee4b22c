/**
 * The cost of each of 10,000 coordinators, and of each of 10,000 registered threads of one
 * coordinator, in JavaScript, compared with the cost when there are half as many.
 */

import { setImmediate as turn } from 'node:timers/promises';
import { Coordinator } from '../dist/index.js';
import { quick, report } from './rounds.mjs';

const ROUNDS = quick ? 1 : 5;
// The last but one is the peer of the last.
const SIZES = quick ? [500, 1000] : [1_250, 2_500, 5_000, 10_000];
const LARGE = SIZES.at(-1);

/** Processor time in microseconds. Not wall time, because other processes share the machine. */
function cpuUs(since) {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

const operations = {
  /** Construct, ask, stop. */
  async coordinator(count) {
    const kept = [];
    for (let i = 0; i < count; i++) {
      const coordinator = new Coordinator();
      if (!coordinator.shouldStop()) coordinator.requestStop();
      kept.push(coordinator);
    }
  },
  /** A pending `waitForStop()` of a child, from its call to the parent's stop. */
  async wait(count) {
    const parent = new Coordinator();
    const children = Array.from({ length: count }, () => parent.child());
    const waits = children.map((child) => child.waitForStop());
    parent.requestStop();
    await Promise.all(waits);
  },
  /** A registered promise, until `join()` has settled. */
  async thread(count) {
    const coordinator = new Coordinator();
    const ends = [];
    for (let i = 0; i < count; i++) {
      coordinator.registerThread(
        new Promise((resolve) => {
          ends.push(resolve);
        }),
      );
    }
    const joined = coordinator.join();
    for (const end of ends) end();
    await joined;
  },
};

async function costUs(operation, count) {
  // The garbage of the last operation must not count for this one.
  globalThis.gc?.();
  await turn();
  const start = process.cpuUsage();
  // LARGE items in total for each size, so that all are measured equally long.
  for (let done = 0; done < LARGE; done += count) await operation(count);
  return cpuUs(start) / LARGE;
}

const rows = {};
for (const [name, operation] of Object.entries(operations)) {
  const sizes = SIZES.map((size) => [size, []]);
  for (let round = quick ? 0 : -1; round < ROUNDS; round++) {
    for (const [size, costs] of sizes) {
      const cost = await costUs(operation, size);
      if (round >= 0) costs.push(cost);
    }
  }
  rows[`scale/${name}`] = { ours: sizes.at(-1)[1], peer: sizes.at(-2)[1], sizes };
}
report(rows);
