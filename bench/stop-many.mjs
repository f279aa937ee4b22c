/** A stop with many listeners, threads or children, beside an AbortController. */

import { setMaxListeners } from 'node:events';
import { Coordinator } from '../dist/index.js';
import { quick, report } from './rounds.mjs';

const ROUNDS = quick ? 2 : 7;
const SIZES = quick ? [100, 200] : [1_250, 2_500, 5_000, 10_000];

/**
 * For each kind: what prepares `count` of it. It returns the stop, which ends when all have heard
 * of it.
 */
const kinds = {
  listeners: {
    ours(count) {
      const coord = new Coordinator();
      return stopOf(listen(coord.signal, count), () => coord.requestStop());
    },
    peer(count) {
      const controller = new AbortController();
      return stopOf(listen(controller.signal, count), () => controller.abort());
    },
  },
  children: {
    ours(count) {
      const coord = new Coordinator();
      const signals = Array.from({ length: count }, () => coord.child().signal);
      const heard = signals.map((signal) => listen(signal, 1));
      return stopOf(Promise.all(heard), () => coord.requestStop());
    },
    peer(count) {
      const controller = new AbortController();
      const signals = Array.from({ length: count }, () => AbortSignal.any([controller.signal]));
      const heard = signals.map((signal) => listen(signal, 1));
      return stopOf(Promise.all(heard), () => controller.abort());
    },
  },
  threads: {
    /** Tasks that wait for the stop. */
    ours(count) {
      const coord = new Coordinator();
      for (let index = 0; index < count; index++) void coord.start(() => coord.waitForStop());
      return stopOf(coord.join(), () => coord.requestStop());
    },
    /** Promises that the listener of a signal resolves. */
    peer(count) {
      const controller = new AbortController();
      const tasks = Array.from({ length: count }, () => listen(controller.signal, 1));
      return stopOf(Promise.all(tasks), () => controller.abort());
    },
  },
};

function listen(signal, count) {
  return new Promise((resolve) => {
    let heard = 0;
    for (let index = 0; index < count; index++) {
      signal.addEventListener('abort', () => {
        if (++heard === count) resolve();
      });
    }
  });
}

function stopOf(ended, stop) {
  return async () => {
    stop();
    await ended;
  };
}

/** Microseconds of one of `count`. */
async function usOf(prepare, count) {
  const stop = prepare(count);
  globalThis.gc();
  await new Promise((resolve) => setImmediate(resolve));
  const start = process.hrtime.bigint();
  await stop();
  return Number(process.hrtime.bigint() - start) / 1_000 / count;
}

setMaxListeners(0); // no warnings
const rows = {};
for (const [kind, { ours, peer }] of Object.entries(kinds)) {
  const sizes = SIZES.map((size) => [size, []]);
  const peers = [];
  for (let round = -1; round < ROUNDS; round++) {
    for (const [size, costs] of sizes) {
      const cost = await usOf(ours, size);
      if (round >= 0) costs.push(cost);
    }
    const cost = await usOf(peer, SIZES.at(-1));
    if (round >= 0) peers.push(cost);
  }
  rows[`stop/${kind}`] = { ours: sizes.at(-1)[1], peer: peers, sizes };
}
report(rows);
