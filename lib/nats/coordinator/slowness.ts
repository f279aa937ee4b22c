/** Which node is merely slow: with the figures that its last probe has measured, and why. */

import type { Explanation, NodeHealth } from '../../errors/phases.ts';

/** A round trip, or a turn of the event loop, that takes longer than this is slow. */
const SLOW_MS = 250;
const SHORT_OF_MEMORY_BYTES = 128 * 1024 ** 2;

const rounded = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));

/** The figures, for people: "round trip 1.2 ms, event loop 3.0 ms late, load 0.5, 7.1 GB free". */
export function figuresOf(health: NodeHealth): string {
  const { roundTripMs, loopDelayMs, load, freeMemory } = health;
  const late = loopDelayMs === undefined ? [] : [`event loop ${rounded(loopDelayMs)} ms late`];
  const loads = load === undefined ? [] : [`load ${load.toFixed(1)}`];
  const free = freeMemory === undefined ? [] : [`${(freeMemory / 1024 ** 3).toFixed(1)} GB free`];
  return [`round trip ${rounded(roundTripMs)} ms`, ...late, ...loads, ...free].join(', ');
}

/** @returns undefined if the node is not slow */
export function slownessOf(health: NodeHealth, cores: number): Explanation | undefined {
  const { roundTripMs, loopDelayMs = 0, load = 0, freeMemory } = health;
  if (roundTripMs < SLOW_MS && loopDelayMs < SLOW_MS) return undefined;
  const cause = (why: string): string => `the node is slow (${figuresOf(health)}): ${why}`;
  if (freeMemory !== undefined && freeMemory < SHORT_OF_MEMORY_BYTES) {
    return {
      cause: cause('its machine is short of memory, and may swap'),
      remedy: 'start the worker with fewer --slots, or free memory',
    };
  }
  if (loopDelayMs * 2 >= roundTripMs) {
    const why =
      load > cores ? `its ${cores} processors are overloaded` : 'its main thread is held up';
    return {
      cause: cause(why),
      remedy: 'start the worker with fewer --slots, or take other work off that machine',
    };
  }
  return {
    cause: cause('the network between coordinator, servers and node is slow'),
    remedy: 'check the network, or put servers and workers nearer to the coordinator',
  };
}
