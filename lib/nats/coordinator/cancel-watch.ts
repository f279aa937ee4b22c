/**
 * Gives up nodes that were told to cancel a function and do not report its end. A node ends a
 * cancelled function itself, by force after the grace period, but cannot report this without a
 * connection. The session of a silent node is given up REPORT_MS after the grace period, so that
 * cancelled functions and deadlines do not wait for the servers.
 */

import { Timer } from '../../base/timer.ts';
import type { Session } from './session.ts';

/** How long after the grace period a node may take to report the end of a function. */
const REPORT_MS = 2_000;

export interface CancelWatchListener {
  isConnected(): boolean;
  onUnreachable(session: Session): void;
}

export class CancelWatch {
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #patienceMs: number;
  readonly #listener: CancelWatchListener;
  #timer: Timer | undefined;

  constructor(
    sessions: ReadonlyMap<string, Session>,
    cancelGraceMs: number,
    listener: CancelWatchListener,
  ) {
    this.#sessions = sessions;
    this.#patienceMs = cancelGraceMs + REPORT_MS;
    this.#listener = listener;
  }

  /** To be called when a function was cancelled. */
  start(): void {
    this.#after(this.#patienceMs);
  }

  stop(): void {
    this.#timer?.clear();
  }

  #after(ms: number): void {
    this.#timer ??= new Timer(ms, () => {
      this.#timer = undefined;
      const since = performance.now() - this.#patienceMs;
      let hasMore = false;
      for (const session of this.#sessions.values()) {
        const { cancelledAt } = session.calls;
        if (cancelledAt === undefined || session.isAway) continue;
        const isLate = cancelledAt <= since && !this.#listener.isConnected();
        if (isLate) this.#listener.onUnreachable(session);
        else hasMore = true;
      }
      if (hasMore) this.#after(REPORT_MS);
    });
  }
}
