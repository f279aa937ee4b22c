/** Fake timers of a test fake the limits that its program gives, and nothing that a worker has to do in time. */

import { createPool } from 'allstop/pool';
import { expect, it, onTestFinished, vi } from 'vitest';
import { errorOf } from '../../support/clusters.ts';

const source = `
  export const add = (a, b) => a + b;
  export const die = () => process.exit(1);
  /** Its thread computes until the word is 1, from when the function has ended. */
  export function block(word) {
    setImmediate(() => {
      Atomics.store(word, 0, -1);
      Atomics.notify(word, 0);
      while (Atomics.load(word, 0) !== 1);
    });
  }
  export function spin(word) {
    Atomics.store(word, 0, -1);
    Atomics.notify(word, 0);
    for (;;);
  }
`;
const module = new URL(`data:text/javascript,${encodeURIComponent(source)}`);

async function start() {
  const pool = createPool(module, { workers: 1, cancelGraceMs: 100 });
  await pool.ready();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  onTestFinished(async () => {
    vi.useRealTimers();
    await pool.close();
  });
  return pool;
}

it('an hour of theirs ends no worker that is late for some milliseconds', async () => {
  const pool = await start();
  const word = new Int32Array(new SharedArrayBuffer(4));
  await pool.run('block', [word]);
  await Atomics.waitAsync(word, 0, 0).value;
  const sum = pool.run('add', [1, 2]);
  await vi.advanceTimersByTimeAsync(3_600_000);
  Atomics.store(word, 0, 1);
  expect(await sum).toBe(3);
  expect(pool.workers).toMatchObject([{ restarts: 0 }]);
});

it('a worker that does not answer is replaced though their Date stands still', {
  tags: 'long',
}, async () => {
  const pool = await start();
  const word = new Int32Array(new SharedArrayBuffer(4));
  await pool.run('block', [word]);
  await Atomics.waitAsync(word, 0, 0).value;
  expect(await pool.run('add', [1, 2])).toBe(3);
  expect(pool.workers).toMatchObject([{ restarts: 1 }]);
});

it('a worker that has died is replaced though no time of theirs passes', async () => {
  const pool = await start();
  await errorOf(pool.run('die', [], { retries: 0 }));
  expect(await pool.run('add', [1, 2])).toBe(3);
});

it('a deadline is theirs, the grace for the function that has missed it is not', async () => {
  const pool = await start();
  const word = new Int32Array(new SharedArrayBuffer(4));
  const late = errorOf(pool.run('spin', [word], { timeoutMs: 60_000 }));
  await Atomics.waitAsync(word, 0, 0).value;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await late).toMatchObject({ name: 'DeadlineExceededError' });
  expect(await pool.run('add', [1, 2])).toBe(3); // on a new worker
  expect(pool.workers).toMatchObject([{ restarts: 1 }]);
});
