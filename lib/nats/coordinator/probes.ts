/**
 * Asks every node again and again whether it is alive (a probe). While we have a connection, a
 * node is lost when for `lostAfterMs` its subject has had no listener (it is gone, or has no
 * connection), or when it has not replied to probes for as long (it hangs, is stopped, or is cut
 * off). Both times are counted in probes, not by the clock: a coordinator that was stopped itself
 * has not asked meanwhile.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer, within } from '../../base/timer.ts';
import { absent, type Explanation, type Loss, lost, silent } from '../../errors/phases.ts';
import { chainOf } from '../connection/connection-failure.ts';
import { json, type ProbeReply, parseProbeReply } from '../wire/control-messages.ts';
import type { Leadership, RunContext } from './leadership.ts';
import type { Session } from './session.ts';

const ROUND_MS = 100;
/** How often a node without functions is probed; a node with functions: in each round. */
const IDLE_MS = 1_000;
/** The most probes a second for all nodes together: with very many, each is probed less often. */
const MOST_A_SECOND = 2_000;
const TIMEOUT_MS = 1_000;
/** How much more patience a node gets that has never been ready: its threads start. */
const STARTING_FACTOR = 6;
/** A server that answers later than this leaves a node too little of TIMEOUT_MS. */
const SOON_MS = 500;
/** How often the server is asked while a node's last probe is out. */
const ASK_SERVER_MS = 250;
/** After this time without a listener, a node in the place of this one gets its task. */
const ABSENT_MS = 500;
/** How long after our own reconnect nodes may take to reconnect before they count as gone. */
const REJOIN_MS = 3_000;

/** What probes need of the run. */
export type ProbesOptions = RunContext & { readonly leadership: Leadership };

export interface ProbesListener {
  onReply(session: Session, reply: ProbeReply): void;
  /** The node has missed a probe, or is absent, but may still reply to the next. */
  onSilent(session: Session, why: Explanation): void;
  onLost(session: Session, loss: Loss): void;
  /** Once a round. */
  onRound(): void;
}

export class Probes {
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #options: ProbesOptions;
  readonly #listener: ProbesListener;
  #nats: NatsConnection | undefined;
  #upSince = 0;
  #round: Timer | undefined;
  /** For how long the event loop of this thread was held up, in all rounds together. */
  #heldUpMs = 0;

  constructor(
    sessions: ReadonlyMap<string, Session>,
    options: ProbesOptions,
    listener: ProbesListener,
  ) {
    this.#sessions = sessions;
    this.#options = options;
    this.#listener = listener;
  }

  /** Begins to probe over this connection. Probes missed over the previous one are forgotten. */
  start(nats: NatsConnection): void {
    this.stop();
    this.#nats = nats;
    this.#upSince = performance.now();
    for (const { contact } of this.#sessions.values()) contact.reconnected();
    this.#next(nats);
  }

  stop(): void {
    this.#round?.clear();
    this.#nats = undefined;
  }

  #next(nats: NatsConnection): void {
    const dueAt = performance.now() + ROUND_MS;
    this.#round = new Timer(ROUND_MS, () => {
      this.#listener.onRound();
      const now = performance.now();
      this.#heldUpMs += Math.max(0, now - dueAt);
      const least = Math.max(ROUND_MS, (this.#sessions.size / MOST_A_SECOND) * 1_000);
      for (const session of this.#sessions.values()) {
        const { contact, calls } = session;
        const isUrgent = !session.isAway && (calls.running > 0 || contact.absence !== undefined);
        const everyMs = isUrgent ? least : Math.max(IDLE_MS, least);
        if (contact.probe(now, everyMs)) void this.#probe(nats, session);
      }
      if (this.#nats === nats) this.#next(nats);
    });
  }

  async #probe(nats: NatsConnection, session: Session): Promise<void> {
    const { own, subjects, leadership, malformed } = this.#options;
    const { contact, id, info } = session;
    const probe = { kind: 'probe', run: own.run, token: leadership.token ?? 0, session: id };
    let isOver = false;
    const sentAt = performance.now();
    const heldUpMs = this.#heldUpMs;
    // First asked ahead of the probe. A late answer: the probe, too, had to wait for a slow link,
    // or the reply waits at a server that hangs.
    const isLast = contact.missed + 1 >= this.#mostMissed(session);
    const isServerQuick = isLast ? staysQuick(nats, () => isOver) : undefined;
    try {
      const { data } = await nats
        .request(subjects.node(info.node), json(probe), { timeout: TIMEOUT_MS })
        .finally(() => (isOver = true));
      if (!this.#isCurrent(nats, session)) return;
      const reply = parseProbeReply(data);
      if (reply === undefined) malformed.drop('a reply to a probe');
      else {
        // While this thread computed, the reply may have waited here.
        const ownMs = this.#heldUpMs - heldUpMs;
        const roundTripMs = Math.max(0, performance.now() - sentAt - ownMs);
        contact.replied({ roundTripMs, ...reply.vitals }, sentAt);
        this.#listener.onReply(session, reply);
      }
    } catch (error) {
      // If an answer of the server is late or missing, the node is not to blame.
      if (!isNoResponders(error) && (await isServerQuick) === false) return;
      if (this.#isCurrent(nats, session)) this.#onNoReply(session, error);
    } finally {
      contact.probed(sentAt);
    }
  }

  /** Whether connection and session are still those that the probe was sent with. */
  #isCurrent(nats: NatsConnection, session: Session): boolean {
    return this.#nats === nats && this.#sessions.get(session.id) === session;
  }

  /** How many probes in a row a node may miss. */
  #mostMissed({ wasReady }: Session): number {
    const patienceMs = this.#options.settings.lostAfterMs * (wasReady ? 1 : STARTING_FACTOR);
    return Math.max(1, Math.ceil(patienceMs / TIMEOUT_MS));
  }

  #onNoReply(session: Session, error: unknown): void {
    if (session.isAway) return;
    if (isNoResponders(error)) {
      this.#onAbsent(session);
      return;
    }
    const missed = session.contact.missedOne();
    const { host, pid } = session.info;
    if (missed >= this.#mostMissed(session)) this.#listener.onLost(session, lost.silent);
    else this.#listener.onSilent(session, silent(host, pid, missed * TIMEOUT_MS));
  }

  #onAbsent(session: Session): void {
    const { contact } = session;
    const upMs = performance.now() - this.#upSince;
    const mayRejoin = contact.heardAt < this.#upSince && upMs < REJOIN_MS;
    const wasSure = contact.absence?.isSure === true;
    const { ms, isSure } = contact.foundNobody(
      TIMEOUT_MS,
      (forMs) => !mayRejoin && forMs >= ABSENT_MS,
    );
    if (mayRejoin) return;
    // A node whose welcome got lost says hello again; a forged hello has no node.
    if (ms >= (session.isConfirmed ? this.#options.settings.lostAfterMs : ABSENT_MS))
      this.#listener.onLost(session, lost.gone);
    else if (isSure && !wasSure) {
      const { host, pid } = session.info;
      this.#listener.onSilent(session, absent(host, pid));
    }
  }
}

/** Whether the server answers soon each time that it is asked in TIMEOUT_MS, or until `isOver`. */
async function staysQuick(nats: NatsConnection, isOver: () => boolean): Promise<boolean> {
  const endsAt = performance.now() + TIMEOUT_MS;
  while (await answersSoon(nats)) {
    if (isOver() || performance.now() + ASK_SERVER_MS >= endsAt) return true;
    await new Promise<void>((resolve) => void new Timer(ASK_SERVER_MS, resolve).unref());
  }
  return false;
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
  return chainOf(error).some(({ name }) => name === 'NoResponders');
}
