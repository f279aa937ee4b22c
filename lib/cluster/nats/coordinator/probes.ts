/**
 * Asks every node again and again whether it is alive (a probe). While we have a connection:
 * a node whose subject has had no listener for ABSENT_MS is gone; a node that has not replied
 * to MAX_MISSED probes in a row hangs, is stopped, or is cut off.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer, within } from '../../../base/timer.ts';
import { type Loss, lost } from '../../../errors/phases.ts';
import { json, type Probe, type ProbeReply, parseProbeReply } from '../wire/control-messages.ts';
import type { Session } from './session.ts';

const ROUND_MS = 100;
/** How often a node without functions is probed; a node with functions: in each round. */
const IDLE_MS = 1_000;
/** With very many nodes each is probed less often, so that all probes together stay below this. */
const MOST_A_SECOND = 2_000;
const TIMEOUT_MS = 1_000;
const MAX_MISSED = 3;
/** A server that answers later than this leaves a node too little of TIMEOUT_MS. */
const SOON_MS = 500;
const ABSENT_MS = 500;
/** After our own reconnect, nodes have so long to reconnect before they count as gone. */
const REJOIN_MS = 3_000;

export interface ProbesListener {
  /** The node's subject, and the message to send there. */
  probeFor(session: Session): { subject: string; probe: Probe };
  onReply(session: Session, reply: ProbeReply): void;
  onMalformed(): void;
  /** The node has missed a probe, but may still reply to the next. */
  onSilent(session: Session, forMs: number): void;
  onLost(session: Session, loss: Loss): void;
  /** Once a round. */
  onRound(): void;
}

export class Probes {
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #listener: ProbesListener;
  #nats: NatsConnection | undefined;
  #upSince = 0;
  #round: Timer | undefined;

  constructor(sessions: ReadonlyMap<string, Session>, listener: ProbesListener) {
    this.#sessions = sessions;
    this.#listener = listener;
  }

  /** Begins to probe over this connection. What nodes missed over the last one is forgotten. */
  start(nats: NatsConnection): void {
    this.stop();
    this.#nats = nats;
    this.#upSince = performance.now();
    for (const session of this.#sessions.values()) {
      session.missed = 0;
      session.absentSince = undefined;
    }
    this.#next(nats);
  }

  stop(): void {
    this.#round?.clear();
    this.#nats = undefined;
  }

  #next(nats: NatsConnection): void {
    this.#round = new Timer(ROUND_MS, () => {
      this.#listener.onRound();
      const now = performance.now();
      const least = Math.max(ROUND_MS, (this.#sessions.size / MOST_A_SECOND) * 1_000);
      for (const session of this.#sessions.values()) {
        const isUrgent = session.running > 0 || session.absentSince !== undefined;
        const every = isUrgent ? least : Math.max(IDLE_MS, least);
        if (session.isProbed || now - session.probedAt < every) continue;
        session.probedAt = now;
        void this.#probe(nats, session);
      }
      if (this.#nats === nats) this.#next(nats);
    });
  }

  async #probe(nats: NatsConnection, session: Session): Promise<void> {
    const { subject, probe } = this.#listener.probeFor(session);
    session.isProbed = true;
    // Sent ahead of the probe. A late answer: the probe, too, had to wait for a slow link.
    const isLast = session.missed + 1 >= MAX_MISSED;
    const isServerQuick = isLast ? answersSoon(nats) : undefined;
    try {
      const { data } = await nats.request(subject, json(probe), { timeout: TIMEOUT_MS });
      if (!this.#isCurrent(nats, session)) return;
      const reply = parseProbeReply(data);
      if (reply === undefined) this.#listener.onMalformed();
      else this.#listener.onReply(session, reply);
    } catch (error) {
      // If the server's answer is late or missing, the node is not to blame.
      if (!isNoResponders(error) && (await isServerQuick) === false) return;
      if (this.#isCurrent(nats, session)) this.#onNoReply(session, error);
    } finally {
      session.isProbed = false;
    }
  }

  /** Whether connection and session are still those that the probe was sent with. */
  #isCurrent(nats: NatsConnection, session: Session): boolean {
    return this.#nats === nats && this.#sessions.get(session.id) === session;
  }

  #onNoReply(session: Session, error: unknown): void {
    const now = performance.now();
    if (isNoResponders(error)) {
      session.absentSince ??= now;
      const mayRejoin = session.heardAt < this.#upSince && now - this.#upSince < REJOIN_MS;
      if (mayRejoin || now - session.absentSince < ABSENT_MS) return;
      this.#listener.onLost(session, lost.gone);
      return;
    }
    session.missed += 1;
    if (session.missed < MAX_MISSED) {
      this.#listener.onSilent(session, session.missed * TIMEOUT_MS);
    } else this.#listener.onLost(session, lost.silent);
  }
}

async function answersSoon(nats: NatsConnection): Promise<boolean> {
  const flushed = nats.flush().then(
    () => true,
    () => false,
  );
  return await within(SOON_MS, flushed, () => false);
}

/** Whether the server has said that nobody listens at the subject. */
function isNoResponders(error: unknown): boolean {
  const { cause, name } = (error ?? {}) as { cause?: { name?: unknown }; name?: unknown };
  return name === 'NoResponders' || cause?.name === 'NoResponders';
}
