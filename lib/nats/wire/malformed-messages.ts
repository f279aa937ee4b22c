/** Counts and drops messages that no allstop process of this version sends. */

import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import { log } from '../../events/spine.ts';

export class MalformedMessages {
  readonly #receiver: string;
  readonly #cluster: string;
  #count = 0;

  /** `receiver`: who drops the messages, for the warning, such as 'The coordinator'. */
  constructor(receiver: string, cluster: string) {
    this.#receiver = receiver;
    this.#cluster = cluster;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Subscribes to a subject. A message for which `onMessage` throws is malformed: an error thrown into
   * the client would end its reading of the socket, and nothing would be heard any more. A refusal of
   * the subscription by the server is ignored here: the connection's status reports it (connection.ts).
   */
  subscribe(
    nats: NatsConnection,
    subject: string,
    onMessage: (message: Msg) => void,
  ): Subscription {
    return nats.subscribe(subject, {
      callback: (refusal, message) => {
        if (refusal !== null) return;
        try {
          onMessage(message);
        } catch (error) {
          this.drop(`at ${subject}`, error);
        }
      },
    });
  }

  /** Counts a message. Warns about the first only, so that nobody can fill the log from outside. */
  drop(what: string, error?: unknown): void {
    this.#count += 1;
    log('%s: dropped %s: %s', this.#cluster, what, error === undefined ? '' : messageOf(error));
    if (this.#count > 1) return;
    process.emitWarning(
      `${this.#receiver} of cluster '${this.#cluster}' dropped a malformed message (${what}). ` +
        'Further ones are dropped silently; ' +
        `\`allstop doctor --servers ... --cluster ${this.#cluster}\` shows how many`,
      { code: 'ALLSTOP_MALFORMED_MESSAGE' },
    );
  }
}
