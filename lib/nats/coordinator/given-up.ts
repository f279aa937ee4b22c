/**
 * The sessions that may have closures which were given up (session.ts, 2): all that are away, and
 * some that are back.
 */

import type { Closure } from '../../pool/queue/closure.ts';
import type { Session } from './session.ts';
import type { ClusterTasks } from './tasks.ts';

/** How long a session is kept whose node is away, and whose task another node has taken. */
const LONGEST_AWAY_MS = 600_000;

export class GivenUp {
  readonly #sessions = new Set<Session>();

  add(session: Session): void {
    this.#sessions.add(session);
  }

  delete(session: Session): void {
    this.#sessions.delete(session);
  }

  /** A node has ended the closure: ends the copies that other nodes have. */
  cancelDuplicates(closure: Closure): void {
    for (const session of this.#sessions) session.cancelDuplicate(closure);
  }

  /**
   * @returns sessions that will not be missed: their node is away, another has their task, and
   *   they have nothing to offer
   */
  expired(tasks: ClusterTasks): Session[] {
    const now = performance.now();
    const expired: Session[] = [];
    for (const session of this.#sessions) {
      const { isAway, hasGivenUp, isForgotten, awaySince } = session;
      if (!isAway && !hasGivenUp) this.#sessions.delete(session);
      if (!isAway || tasks.named(session).session === undefined) continue;
      if (isForgotten || now - awaySince > LONGEST_AWAY_MS) expired.push(session);
    }
    return expired;
  }
}
