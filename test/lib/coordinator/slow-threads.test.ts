/** `join({ warnSeenAfterMs })` names the threads that ask too seldom. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { expect, it } from 'vitest';

const own = new URL('../../fixtures/slow-worker.mjs', import.meta.url);

/** A stop of a worker that is busy for `busyMs` before it asks. @returns the warnings */
async function warningsOf(busyMs: number, warnSeenAfterMs?: number): Promise<Error[]> {
  const coord = new Coordinator({ name: 'app\r\n' });
  const begun = new Int32Array(new SharedArrayBuffer(4));
  const worker: Worker = coord.spawn(own, { name: 'reader', workerData: { begun, busyMs } });
  await once(worker, 'message');
  const warnings: Error[] = [];
  const listen = (warning: Error): void => void warnings.push(warning);
  process.on('warning', listen);
  coord.requestStop();
  Atomics.store(begun, 0, 1);
  await coord.join({ warnSeenAfterMs });
  await new Promise((resolve) => setImmediate(resolve)); // a warning is emitted in the next tick
  process.off('warning', listen);
  return warnings;
}

it('warns of a thread that has seen the stop too late', async () => {
  const [warning, ...others] = await warningsOf(1_100, 1_000);
  expect(warning).toMatchObject({ name: 'SlowStopWarning', code: 'ALLSTOP_SLOW_STOP' });
  expect(warning?.message).toMatch(
    /coordinator 'app\\x0d\\x0a' .* after 1000 ms: reader \(\d+ ms\)$/,
  );
  expect(others).toEqual([]);
});

it('does not warn of one that was in time, nor without the option', async () => {
  expect(await warningsOf(0, 60_000)).toEqual([]);
  expect(await warningsOf(60)).toEqual([]);
});

it('refuses what is no duration', async () => {
  const join = new Coordinator().join({ warnSeenAfterMs: -1 });
  await expect(join).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
});
