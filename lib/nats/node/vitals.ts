/** How well the node's process does: read when a probe comes. */

import { freemem, loadavg } from 'node:os';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Vitals } from '../wire/control-messages.ts';

const RESOLUTION_MS = 20;

export class NodeVitals {
  /** Undefined where the runtime cannot measure it. */
  #delay: IntervalHistogram | undefined;

  constructor() {
    try {
      this.#delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#delay.enable();
    } catch {
      this.#delay = undefined;
    }
  }

  /** The longest delay of the event loop since the last call, the load and the free memory now. */
  read(): Vitals {
    const vitals: Vitals = { load: loadavg()[0] as number, freeMemory: freemem() };
    const longestMs = (this.#delay?.max ?? 0) / 1e6;
    if (this.#delay !== undefined && this.#delay.count > 0) {
      vitals.loopDelayMs = Math.max(0, longestMs - RESOLUTION_MS);
    }
    this.#delay?.reset();
    return vitals;
  }

  close(): void {
    this.#delay?.disable();
  }
}
