import { Coordinator } from '../dist/index.js';

export const add = (a, b) => a + b;

/**
 * Returns the time at which the stop arrived: nanoseconds of the clock that all processes share.
 */
export function untilStopped() {
  Coordinator.current().waitForStopSync();
  return process.hrtime.bigint();
}
