// The functions that cluster.mjs schedules.
import { Coordinator } from 'allstop';
import { currentCall } from 'allstop/cluster';

export const add = (a, b) => a + b;

export const fail = () => {
  throw Object.assign(new RangeError('broken'), { code: 'E_BROKEN', extra: new Map([[1n, null]]) });
};

/** Ends its worker on the first attempt. */
export function dieOnce() {
  const { attempt } = currentCall();
  if (attempt === 1) process.exit(7);
  return attempt;
}

export function* numbers(from) {
  for (let number = from; ; number += 1) yield number;
}

export const next = async (iterator) => (await iterator.next()).value;

export async function untilAborted() {
  const { signal } = currentCall();
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  throw signal.reason;
}

export function spin() {
  for (;;);
}

export const increment = (memory) => Atomics.add(new Int32Array(memory), 0, 1);

export function stop() {
  Coordinator.current().requestStop(new RangeError('enough'));
}

export async function announceAndSpin() {
  currentCall().report('begun');
  await new Promise((resolve) => setTimeout(resolve, 20)); // the report leaves
  for (;;);
}

/** The same without a cost, where it does not matter that it computes. */
export async function announceAndBlock() {
  currentCall().report('begun');
  await new Promise((resolve) => setTimeout(resolve, 20));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** A name that steers a terminal, and forges a line. */
export { announceAndBlock as 'block\nallstop: forged\x1b[31m' };
