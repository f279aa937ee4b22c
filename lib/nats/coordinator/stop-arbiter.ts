/**
 * Decides which stop is the stop record of the run. Several processes may stop the run at once;
 * the first stop that the coordinator's process knows of is the record, and is announced to all
 * nodes. Before the announcement, a node's own record and a stop that a node has heard by broadcast
 * are provisional: the broadcast only makes the stop known sooner.
 */

import { hostname } from 'node:os';
import { Timer } from '../../base/timer.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { applyStop, type StopMessage, stopMessage } from '../../pool/worker/stop-relay.ts';

/** How long our own work waits after a broadcast, so that processes on this machine stop first. */
const QUIET_MS = 10;

export interface StopListener {
  /** Sends the stop to all nodes in one message, which may be lost. */
  broadcast(stop: StopMessage): void;
  /** Sends the stop record through every session, which loses nothing. */
  announce(stop: StopMessage): void;
}

export class StopArbiter {
  readonly #coordinator: Coordinator;
  readonly #listener: StopListener;
  /** The run's stop came from a node, which has broadcast it: it is not broadcast again. */
  #isBroadcast = false;
  /** Ids of the stops that nodes have reported: several nodes may report the same one. */
  readonly #heard = new Set<string>();
  /** Work that waits until the broadcast has been heard. Undefined when nothing has to wait. */
  #waiting: (() => void)[] | undefined;
  #quiet: Timer | undefined;

  constructor(coordinator: Coordinator, listener: StopListener) {
    this.#coordinator = coordinator;
    this.#listener = listener;
    coordinator.signal.addEventListener('abort', () => this.#onStop());
  }

  /** The stop record, as it is sent to nodes. Undefined when the run is not stopped. */
  get stop(): StopMessage | undefined {
    const stop = stopMessage(this.#coordinator);
    if (stop === undefined) return undefined;
    const { requester } = stop;
    return { ...stop, requester: { ...requester, host: requester.host ?? hostname() } };
  }

  /** Called when a node reports that it, or another node, has stopped the run. */
  heard(stop: StopMessage): void {
    const { stop: known } = this;
    if (this.#heard.has(stop.id)) return;
    this.#heard.add(stop.id);
    if (known === undefined) {
      this.#isBroadcast = true;
      applyStop(this.#coordinator, stop);
      return;
    }
    // A later stop: its error becomes one of the record's `suppressed`.
    if (stop.id !== known.id && stop.error !== null) applyStop(this.#coordinator, stop);
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

  #onStop(): void {
    const stop = this.stop as StopMessage;
    if (!this.#isBroadcast) this.#listener.broadcast(stop);
    this.#waiting = [];
    this.#quiet = new Timer(QUIET_MS, () => this.hurry());
    this.afterBroadcast(() => this.#listener.announce(stop));
  }
}
