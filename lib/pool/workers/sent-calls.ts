/**
 * The calls that were sent to one worker or node and have not ended, in the order of sending.
 */

import type { Call } from '../queue/call.ts';
import type { Fate } from '../worker/protocol.ts';

export type Sent = {
  readonly call: Call;
  /** How long its function is expected to run, in microseconds. */
  readonly expectedUs: number;
  /** Date.now() when it was sent. */
  readonly sentAt: number;
};

/**
 * Whether the arguments are at the worker alone, since they were moved there. (Packed ones came from
 * a coordinator on NATS, which has a copy of them.)
 */
export function isOnlyHere({ isMoved, work }: Call): boolean {
  return isMoved && !(work.args instanceof Uint8Array);
}

export class SentCalls<S extends Sent = Sent> {
  readonly #sent = new Map<number, S>();
  #expectedUs = 0;

  get size(): number {
    return this.#sent.size;
  }

  /** How long all calls here are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#expectedUs;
  }

  /** The one that was sent first. */
  get first(): S | undefined {
    return this.#sent.values().next().value;
  }

  get({ id }: Pick<Call, 'id'>): S | undefined {
    return this.#sent.get(id);
  }

  add(sent: S): void {
    this.#sent.set(sent.call.id, sent);
    this.#expectedUs += sent.expectedUs;
  }

  /** @returns undefined if no such call is here: it was recalled, or has ended before */
  remove(id: number): S | undefined {
    const sent = this.#sent.get(id);
    if (sent === undefined) return undefined;
    this.#sent.delete(id);
    // Set to 0 when no call is left: differences of rounded numbers may not reach 0 exactly.
    this.#expectedUs = this.#sent.size === 0 ? 0 : this.#expectedUs - sent.expectedUs;
    return sent;
  }

  /** Wherever the calls here are sent next, they may take longer to begin. */
  allowLonger(): void {
    for (const { call } of this.#sent.values()) call.allowLonger();
  }

  /**
   * If calls are returned in this order, they are at the head of the queue in their old order.
   */
  newestFirst(): S[] {
    return [...this.#sent.values()].toReversed();
  }
}

/**
 * The calls of a lost worker in the order in which they are returned. Those that ran, or may have,
 * go to the tail of the queue, the oldest first; the others to its head, the newest first: so both
 * get their old order.
 */
export function inOrderOfReturn<S extends Sent>(
  sent: SentCalls<S>,
  fateOf: (sent: S) => Fate,
): (S & { fate: Fate })[] {
  const lost = sent.newestFirst().map((each) => ({ ...each, fate: fateOf(each) }));
  const goesLast = ({ call, fate }: (typeof lost)[number]): boolean =>
    fate === 'running' || call.isSuspect;
  return [...lost.filter((each) => !goesLast(each)), ...lost.filter(goesLast).toReversed()];
}
