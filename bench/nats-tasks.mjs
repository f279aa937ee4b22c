import { currentTask } from '../dist/cluster/index.js';

export const add = (a, b) => a + b;

/** When the stop was there: nanoseconds of the clock that all processes share. */
export async function untilStopped() {
  const { signal } = currentTask();
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
  return process.hrtime.bigint();
}
