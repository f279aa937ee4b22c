/**
 * Decides which stop is the stop record of the run, and announces it to all nodes. A stop is
 * broadcast before that: the broadcast only makes it known sooner.
 */

import { hostname } from 'node:os';
import { Timer } from '../../base/timer.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { StopArbiter as Arbiter, type StopMessage } from '../../coordinator/stop-relay.ts';
import { cleaned } from '../wire/shapes.ts';

/** How long our own work waits after a broadcast, so that processes on this machine stop first. */
const QUIET_MS = 10;

export interface StopListener {
  /** Sends the stop to all nodes in one message, which may be lost. */
  broadcast(stop: StopMessage): void;
  /** Sends the stop record through every session, which loses nothing. */
  announce(stop: StopMessage): void;
}

export class StopArbiter {
  readonly #arbiter: Arbiter;
  /** Work that waits until the broadcast has been heard. Undefined when nothing has to wait. */
  #waiting: (() => void)[] | undefined;
  #quiet: Timer | undefined;

  constructor(coordinator: Coordinator, listener: StopListener) {
    this.#arbiter = new Arbiter(coordinator, (record, isHeard) => {
      const stop = fromHere(record);
      if (!isHeard) listener.broadcast(stop); // else a node has broadcast it
      this.#waiting = [];
      this.#quiet = new Timer(QUIET_MS, () => this.hurry());
      this.afterBroadcast(() => listener.announce(stop));
    });
  }

  /** The stop record, as it is sent to nodes. Undefined when the run is not stopped. */
  get stop(): StopMessage | undefined {
    const { stop } = this.#arbiter;
    return stop && fromHere(stop);
  }

  /** Called when a node reports that it, or another node, has stopped the run. */
  heard(stop: StopMessage): void {
    this.#arbiter.hear(stop);
  }

  /** Runs `work` now, or after QUIET_MS if a stop has just been broadcast. */
  afterBroadcast(work: () => void): void {
    if (this.#waiting === undefined) work();
    else this.#waiting.push(work);
  }

  /** Runs the waiting work now. */
  hurry(): void {
    this.#quiet?.clear();
    const works = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const work of works) work();
  }
}

/** The requester of a stop of this process names its machine. */
const fromHere = (stop: StopMessage): StopMessage => ({
  ...stop,
  requester: { ...stop.requester, host: cleaned(stop.requester.host ?? hostname()) },
});
