/**
 * `who` messages: by them coordinators of the same cluster learn of each other, and all nodes
 * learn which run holds the cluster.
 */

import { json, parseControl } from '../wire/control-messages.ts';
import type { Leadership } from './leadership.ts';

export class WhoMessages {
  readonly #run: string;
  readonly #leadership: Leadership;
  readonly #send: (message: Uint8Array) => void;

  constructor(run: string, leadership: Leadership, send: (message: Uint8Array) => void) {
    this.#run = run;
    this.#leadership = leadership;
    this.#send = send;
  }

  /**
   * Receives a `who`, from another coordinator or a doctor (token 0, to which only nodes reply).
   *
   * @returns false if it is malformed
   */
  receive(data: Uint8Array, reply: string | undefined): boolean {
    const who = parseControl(data, 'who');
    if (who === undefined) return false;
    if (who.run === this.#run) return true;
    this.#leadership.doubt(who.token, true);
    // An older run that does not know of this run yet learns of it by our `who`.
    const isOlder = who.token < (this.#leadership.token ?? 0);
    if (isOlder && (reply ?? '') === '') this.say();
    return true;
  }

  /** Tells all nodes and coordinators that this run holds the cluster, if we believe so. */
  say(): void {
    const { token, state } = this.#leadership;
    if (state.phase !== 'ready') return;
    this.#send(json({ kind: 'who', run: this.#run, token }));
  }
}
