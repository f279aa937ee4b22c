/**
 * The cost of each of 10,000 coordinators, and of each of 10,000 registered threads of one
 * coordinator, in JavaScript, compared with the cost when there are half as many.
 */

import { setImmediate as turn } from 'node:timers/promises';
import { Coordinator } from '../dist/index.js';
import { quick, report } from './rounds.mjs';

const ROUNDS = quick ? 1 : 9;
const [SMALL, LARGE] = quick ? [500, 1000] : [5000, 10_000];

/** Processor time in microseconds. Not wall time, because other processes share the machine. */
function cpuUs(since) {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

const operations = {
  async 'a coordinator: construct, ask, stop'(count) {
    const kept = [];
    for (let i = 0; i < count; i++) {
      const coordinator = new Coordinator();
      if (!coordinator.shouldStop()) coordinator.requestStop();
      kept.push(coordinator);
    }
  },
  async 'a pending `waitForStop()` of a child, from call to the parent’s stop'(count) {
    const parent = new Coordinator();
    const children = Array.from({ length: count }, () => parent.child());
    const waits = children.map((child) => child.waitForStop());
    parent.requestStop();
    await Promise.all(waits);
  },
  async 'a registered promise, until `join()` has settled'(count) {
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
  // LARGE items in total for both sizes, so that both are measured equally long.
  for (let done = 0; done < LARGE; done += count) await operation(count);
  return cpuUs(start) / LARGE;
}

const rows = [];
for (const [what, operation] of Object.entries(operations)) {
  const ours = [];
  const peer = [];
  for (let round = quick ? 0 : -2; round < ROUNDS; round++) {
    const large = await costUs(operation, LARGE);
    const small = await costUs(operation, SMALL);
    if (round < 0) continue;
    ours.push(large);
    peer.push(small);
  }
  rows.push({
    what: `${LARGE.toLocaleString('en')} of: ${what}`,
    peerName: `the same with ${SMALL.toLocaleString('en')}`,
    unit: 'µs each',
    ours,
    peer,
    goal: { flat: true },
  });
}
report(rows);
