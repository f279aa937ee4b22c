/**
 * The NATS subjects of a cluster, and how one listens at them. docs/nats.md lists who may publish and
 * listen where.
 */

import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import { log } from '../../events/spine.ts';

export type Role = 'coordinator' | 'worker' | 'doctor';

/**
 * The random names of runs, sessions and nodes are part of the subjects, so that nobody receives
 * late messages of an earlier run.
 */
export class Subjects {
  readonly #prefix: string;

  constructor(cluster: string) {
    this.#prefix = `allstop.${cluster}`;
  }

  /** From the coordinator or a doctor to all nodes, which answer with a hello. */
  get who(): string {
    return `${this.#prefix}.who`;
  }

  /** From a node without a session to the coordinator. */
  get hello(): string {
    return `${this.#prefix}.hello`;
  }

  /** From the coordinator to a node: welcome or refused, and probes. */
  readonly node = (node: string): string => `${this.#prefix}.node.${node}`;

  /** Frames of a session, from the coordinator. */
  readonly down = (session: string): string => `${this.#prefix}.down.${session}`;

  /** Frames of a session, to the coordinator. '*': of all sessions. */
  readonly up = (session: string): string => `${this.#prefix}.up.${session}`;

  /** From the process in which a stop began to all processes of the run: the provisional stop. */
  readonly stop = (run: string): string => `${this.#prefix}.stop.${run}`;

  /** The prefix of a role's reply subjects: a server can forbid them to the other roles. */
  readonly inbox = (role: Role): string => `${this.#prefix}.inbox.${role}`;

  /** From a doctor to the coordinator, which replies with its report. */
  get report(): string {
    return `${this.#prefix}.report`;
  }
}

/** The name of a cluster: subjects and a bucket's name contain it, and permit no other letters. */
export const CLUSTER_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;

/** Counts and drops messages that no allstop process of this version sends. */
export class MalformedMessages {
  readonly #receiver: string;
  readonly #cluster: string;
  count = 0;

  /** `receiver`: who drops the messages, for the warning, such as 'The coordinator'. */
  constructor(receiver: string, cluster: string) {
    this.#receiver = receiver;
    this.#cluster = cluster;
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
    this.count += 1;
    log('%s: dropped %s: %s', this.#cluster, what, error === undefined ? '' : messageOf(error));
    if (this.count > 1) return;
    process.emitWarning(
      `${this.#receiver} of cluster '${this.#cluster}' dropped a malformed message (${what}). ` +
        'Further ones are dropped silently; ' +
        `\`allstop doctor --servers ... --cluster ${this.#cluster}\` shows how many`,
      { code: 'ALLSTOP_MALFORMED_MESSAGE' },
    );
  }
}
