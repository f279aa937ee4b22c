/**
 * Whether the nodes are there: each is asked, again and again. One at whose subject nobody
 * listens for ABSENT_MS is gone; one that has not answered MAX_MISSED times in a row hangs,
 * is stopped or is cut off. Only while we are connected ourselves.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer } from '../../../base/timer.ts';
import { json, type Probe, type ProbeReply, parseProbeReply } from '../wire/control-messages.ts';
import type { Session } from './session.ts';

const ROUND_MS = 100;
/** Of a node that has nothing to do. */
const IDLE_MS = 1_000;
/** With many nodes each is asked less often: so many a second in all. */
const MOST_A_SECOND = 2_000;
const TIMEOUT_MS = 1_000;
const MAX_MISSED = 3;
const ABSENT_MS = 500;
/** As long after our own connection is back others may still be on their way. */
const REJOIN_MS = 3_000;

export interface ProbesListener {
  /** Where a node is asked, and what. */
  questionFor(session: Session): { subject: string; probe: Probe };
  onAnswer(session: Session, answer: ProbeReply): void;
  onMalformed(): void;
  /** It has not answered for so long. */
  onSilent(session: Session, forMs: number): void;
  /** `mayLive`: it is only silent. */
  onLost(session: Session, how: string, mayLive: boolean): void;
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

  /** We are connected. */
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
    const { subject, probe } = this.#listener.questionFor(session);
    session.isProbed = true;
    try {
      const { data } = await nats.request(subject, json(probe), { timeout: TIMEOUT_MS });
      if (!this.#isAbout(nats, session)) return;
      const answer = parseProbeReply(data);
      if (answer === undefined) this.#listener.onMalformed();
      else this.#listener.onAnswer(session, answer);
    } catch (error) {
      const isDoubtful = !isNoResponders(error) && session.missed + 1 >= MAX_MISSED;
      // It may be the server that is silent: then nobody is lost, and we are soon disconnected.
      if (isDoubtful && !(await answers(nats))) return;
      if (this.#isAbout(nats, session)) this.#onNoAnswer(session, error);
    } finally {
      session.isProbed = false;
    }
  }

  /** Whether it is still of interest what comes of a question. */
  #isAbout(nats: NatsConnection, session: Session): boolean {
    return this.#nats === nats && this.#sessions.get(session.id) === session;
  }

  #onNoAnswer(session: Session, error: unknown): void {
    const now = performance.now();
    if (isNoResponders(error)) {
      session.absentSince ??= now;
      const mayRejoin = session.heardAt < this.#upSince && now - this.#upSince < REJOIN_MS;
      if (mayRejoin || now - session.absentSince < ABSENT_MS) return;
      this.#listener.onLost(session, 'is gone', false);
      return;
    }
    session.missed += 1;
    if (session.missed < MAX_MISSED) {
      this.#listener.onSilent(session, session.missed * TIMEOUT_MS);
      return;
    }
    const why = 'does not answer: it hangs, is stopped, or its network is cut';
    this.#listener.onLost(session, why, true);
  }
}

/** Whether the server does, in time. */
async function answers(nats: NatsConnection): Promise<boolean> {
  let timer: Timer | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = new Timer(TIMEOUT_MS, () => resolve(false));
  });
  const flushed = nats.flush().then(
    () => true,
    () => false,
  );
  const isThere = await Promise.race([flushed, tooLate]);
  timer?.clear();
  return isThere;
}

function isNoResponders(error: unknown): boolean {
  const { cause, name } = (error ?? {}) as { cause?: { name?: unknown }; name?: unknown };
  return name === 'NoResponders' || cause?.name === 'NoResponders';
}
