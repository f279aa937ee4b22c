import { currentCall } from '../dist/cluster/index.js';
import { Coordinator } from '../dist/index.js';

export const add = (a, b) => a + b;

/**
 * Returns the time at which the stop arrived: nanoseconds of the clock that all processes share.
 */
export function untilStopped() {
  Coordinator.current().waitForStopSync();
  return process.hrtime.bigint();
}

export const bytes = (length) => new Uint8Array(length);

export const sizeOf = (value) => value.byteLength;

/** Takes `ms` milliseconds. Returns the number of the attempt. */
export async function nap(ms) {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return currentCall().attempt;
}
