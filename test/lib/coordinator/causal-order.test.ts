// A thread that has seen a stop tells another thread, which then looks at its own flag.

import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { expect, it } from 'vitest';
import { turn } from '../../support/gate.ts';

const ROUNDS = 300;
const ROUND = 0;
const SEEN = 1;
const TELLER_IS_DONE = 2;
const TOLD_IS_DONE = 3;
const LATE = 4;

const body = `
  const { parentPort, workerData: { handle, words, role } } = require('node:worker_threads');
  import('allstop').then(({ Coordinator }) => {
    const coord = Coordinator.attach(handle);
    parentPort.postMessage('ready');
    for (let round = 1; round <= ${ROUNDS}; round++) {
      while (Atomics.load(words, ${ROUND}) < round) Atomics.wait(words, ${ROUND}, round - 1, 1);
      if (role === 'teller') {
        while (!coord.shouldStop());
        Atomics.store(words, ${SEEN}, round);
        Atomics.store(words, ${TELLER_IS_DONE}, round);
      } else {
        while (Atomics.load(words, ${SEEN}) < round);
        if (!coord.shouldStop()) Atomics.add(words, ${LATE}, 1);
        Atomics.store(words, ${TOLD_IS_DONE}, round);
      }
    }
  });`;

it('a thread that is told of the stop sees it, however many queues lie between', {
  tags: 'long',
}, async () => {
  const coord = new Coordinator();
  const words = new Int32Array(new SharedArrayBuffer(64));
  const start = async (role: string): Promise<void> => {
    const worker = new Worker(body, {
      eval: true,
      workerData: { handle: coord.handle, words, role },
    });
    await new Promise((resolve) => worker.once('message', resolve));
  };
  await start('teller');
  const between = Array.from(
    { length: 15_000 },
    () => new BoundedQueue({ capacity: 1, coordinator: coord }),
  );
  await start('told');
  for (let round = 1; round <= ROUNDS; ++round) {
    Atomics.store(words, ROUND, round);
    await new Promise((resolve) => setTimeout(resolve, 2)); // both look for the stop by then
    coord.requestStop();
    while (words[TELLER_IS_DONE]! < round || words[TOLD_IS_DONE]! < round) await turn();
    coord.clearStop();
  }
  expect(between).toHaveLength(15_000);
  // No order is promised. One of two processors may be taken away between two flags.
  expect(words[LATE]).toBeLessThan(ROUNDS / 30);
});
