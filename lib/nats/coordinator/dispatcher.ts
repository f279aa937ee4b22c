/**
 * Decides which node gets which call. A node gets as many calls as it has threads. If
 * functions are so short that sending takes longer than running, a node that has just sent
 * results gets more in advance: as many as keep each thread busy for NODE_AHEAD_US. Calls
 * that a node has not started are recalled when another node is idle. Of what was sent in advance
 * nobody can tell, when the node is lost, whether it was started: so a call that may not be started
 * twice (`retries: 0`) is not sent in advance, and each other counts as started. A suspect goes to a
 * node that has nothing else, which gets nothing else until the suspect has ended.
 */

import { setImmediate } from '../../base/timer.ts';
import type { ClusterHost } from '../../pool/queue/strategy.ts';
import type { Resource } from '../../pool/worker/messages.ts';
import { coalesced, Feeding } from '../../pool/workers/feeding.ts';
import type { Session } from './session.ts';

/**
 * Work sent in advance for each thread of a node, by the measured durations of its functions. More
 * than in a local pool: a round trip is longer.
 */
const NODE_AHEAD_US = 10_000;
/** The most calls for each thread of a node, however short they are. */
const MAX_AHEAD = 512;

export class Dispatcher {
  readonly #host: ClusterHost;
  readonly #sessions: ReadonlyMap<string, Session>;
  /** Sessions that may have fewer calls than threads. */
  readonly #idle = new Set<Session>();
  readonly #feeding: Feeding;
  /** Called when a call may have been queued. */
  readonly wake: () => void = coalesced(queueMicrotask, () => this.#pump());
  readonly #even: () => void = coalesced(setImmediate, () => this.#evenOut());
  #isOpen = false;
  #areMixed = false;

  constructor(host: ClusterHost, sessions: ReadonlyMap<string, Session>) {
    this.#host = host;
    this.#sessions = sessions;
    this.#feeding = new Feeding(host.queue, NODE_AHEAD_US, this.wake);
  }

  /** A node is there, or is back. */
  add(session: Session): void {
    if (session.info.job !== 'worker') return;
    for (const resource of this.#host.resources) session.prepare(resource);
  }

  prepare(resource: Resource): void {
    for (const session of this.#sessions.values()) {
      if (session.info.job === 'worker' && !session.isAway) session.prepare(resource);
    }
  }

  remove(session: Session): void {
    this.#idle.delete(session);
  }

  /** Called when the node's capacity may have changed. */
  changed(session: Session): void {
    this.#idle.add(session);
    this.#pump();
  }

  /**
   * Called when the node has sent results. Feeds idle nodes and this one, not all: with many nodes
   * results are frequent.
   */
  freed(session: Session): void {
    if (!session.canTake) return; // its next status calls `changed`
    if (!this.#isOpen) {
      this.#idle.add(session);
      return;
    }
    // Feed idle nodes first: calls recalled for an idle node must not return to a busy node.
    this.#feedIdle();
    const fed = this.#feed(session, true);
    session.calls.flush();
    if (fed === 'full') return;
    if (session.calls.running < session.status.capacity) this.#idle.add(session);
    if (fed === 'no-work') this.#evenSoon();
  }

  measure(name: string, us: number): void {
    this.#feeding.measure(name, us);
  }

  #pump(): void {
    if (!this.#isOpen) return;
    this.#feedIdle();
    this.#evenSoon();
  }

  /** No call is sent until this run holds the cluster. */
  hold(isHeld: boolean): void {
    this.#isOpen = isHeld;
  }

  /** Whether the nodes have different functions: then what one cannot run another may. */
  mix(areMixed: boolean): void {
    this.#areMixed = areMixed;
  }

  #feedIdle(): void {
    for (const session of this.#idle) {
      const fed = session.canTake ? this.#feed(session, false) : 'full';
      session.calls.flush();
      if (fed === 'full') this.#idle.delete(session);
      else if (fed === 'no-work' && !this.#host.queue.line.hasPlaced && !this.#areMixed) return;
    }
  }

  /** @param inAdvance - whether the node may get more calls than it has threads */
  #feed(session: Session, inAdvance: boolean): 'full' | 'no-work' | 'suspect' {
    const { capacity } = session.status;
    const { calls, channel } = session;
    return this.#feeding.feed(calls, () => {
      if (calls.hasSuspect) return false;
      if (calls.running < capacity) return true;
      const isFull = calls.expectedUs >= NODE_AHEAD_US || calls.running >= capacity * MAX_AHEAD;
      // A full channel sends nothing now: a call takes less memory in the queue than in it.
      if (!inAdvance || isFull || channel.isFull) return false;
      return this.#host.queue.next(calls)?.retries !== 0;
    });
  }

  #evenSoon(): void {
    if (this.#idle.size > 0) this.#even();
  }

  /** Recalls half of what the fullest node has in advance, if another node is idle. */
  #evenOut(): void {
    const isIdle = (session: Session): boolean =>
      session.canTake && session.calls.running < session.status.capacity;
    if (![...this.#idle].some(isIdle)) return;
    let fullest: Session | undefined;
    for (const session of this.#sessions.values()) {
      const most = fullest?.calls.running ?? session.status.capacity;
      if (session.canTake && session.calls.running > most) fullest = session;
    }
    if (fullest === undefined || fullest.calls.isRecalling) return;
    const more = fullest.calls.running - fullest.status.capacity;
    fullest.calls.recall(Math.ceil(more / 2));
  }
}
