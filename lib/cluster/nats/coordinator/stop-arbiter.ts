/**
 * The stop of a run. The coordinator's process decides which was the first: its record is
 * everybody's. What a node says is provisional until then, and so is a broadcast, which only
 * makes it known sooner.
 */

import { hostname } from 'node:os';
import { Timer } from '../../../base/timer.ts';
import type { Coordinator } from '../../../coordinator/coordinator.ts';
import { applyStop, type StopMessage, stopMessage } from '../../worker/stop-relay.ts';

/** So long the processors are for those who are woken by a broadcast. */
const QUIET_MS = 10;

export interface StopListener {
  /** To everybody, as soon as possible. */
  broadcast(stop: StopMessage): void;
  /** To everybody, for certain. */
  announce(stop: StopMessage): void;
}

export class StopArbiter {
  readonly #coordinator: Coordinator;
  readonly #listener: StopListener;
  /** A node has asked for it, and told everybody. */
  #isKnown = false;
  /** Several may tell of the same. */
  readonly #heard = new Set<string>();
  /** What follows the broadcast; undefined: there is none to give way to. */
  #following: (() => void)[] | undefined;
  #quiet: Timer | undefined;

  constructor(coordinator: Coordinator, listener: StopListener) {
    this.#coordinator = coordinator;
    this.#listener = listener;
    coordinator.signal.addEventListener('abort', () => this.#onStop());
  }

  /** The record, as it goes to a node; undefined: there is none. */
  get stop(): StopMessage | undefined {
    const stop = stopMessage(this.#coordinator);
    if (stop === undefined) return undefined;
    const { requester } = stop;
    return { ...stop, requester: { ...requester, host: requester.host ?? hostname() } };
  }

  /** A node has asked for it, or knows who has; it may have been heard before. */
  heard(stop: StopMessage): void {
    const { stop: known } = this;
    if (this.#heard.has(stop.id)) return;
    this.#heard.add(stop.id);
    if (known === undefined) {
      this.#isKnown = true;
      applyStop(this.#coordinator, stop);
      return;
    }
    if (stop.id !== known.id && stop.error !== null) applyStop(this.#coordinator, stop);
  }

  /** Done now, or when a broadcast has had the time to reach everybody. */
  afterBroadcast(work: () => void): void {
    if (this.#following === undefined) work();
    else this.#following.push(work);
  }

  /** What gives way is done now. */
  hurry(): void {
    this.#quiet?.clear();
    const works = this.#following ?? [];
    this.#following = undefined;
    for (const work of works) work();
  }

  #onStop(): void {
    const stop = this.stop as StopMessage;
    if (!this.#isKnown) this.#listener.broadcast(stop);
    this.#following = [];
    this.#quiet = new Timer(QUIET_MS, () => this.hurry());
    this.afterBroadcast(() => this.#listener.announce(stop));
  }
}
