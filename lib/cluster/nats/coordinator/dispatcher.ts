/**
 * Who gets which closure. A node gets as many as it has threads; and where functions are
 * short, so that handing them over takes longer than running them, up to AHEAD_US of them in
 * advance, with its results. What it has not started is taken back when another has nothing
 * to do.
 */

import type { StrategyHost } from '../../closures/strategy.ts';
import { FunctionDurations } from '../../pool/function-durations.ts';
import type { Session } from './session.ts';

/** A node has so much to do in advance on each thread, as far as that can be told. */
const AHEAD_US = 10_000;
const MAX_AHEAD = 512;

export class Dispatcher {
  readonly #host: StrategyHost;
  readonly #sessions = new Set<Session>();
  /** Those that may have less to do than they can. */
  readonly #idle = new Set<Session>();
  readonly #durations = new FunctionDurations();
  #isPumpDue = false;
  #isEvenDue = false;
  /** Nothing is given to anybody before. */
  isOpen = false;

  constructor(host: StrategyHost) {
    this.#host = host;
  }

  add(session: Session): void {
    this.#sessions.add(session);
    if (session.info.job === 'worker') this.#prepare(session);
  }

  remove(session: Session): void {
    this.#sessions.delete(session);
    this.#idle.delete(session);
  }

  /** There may be something to take. */
  wake(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  /** It can take more than before, or less. */
  changed(session: Session): void {
    this.#idle.add(session);
    this.#pump();
  }

  /** It has answered. Only this one is looked at: with many nodes there are many results. */
  freed(session: Session): void {
    if (!session.canTake) return; // it will say when it can
    if (!this.isOpen) {
      this.#idle.add(session);
      return;
    }
    // Who has nothing to do comes before who gets something in advance: what one has given
    // back for the other would go to it again.
    this.#feedIdle();
    const hasWork = this.#feed(session, true);
    session.flush();
    if (hasWork) return;
    if (session.running < session.status.capacity) this.#idle.add(session);
    this.#evenSoon();
  }

  measure(name: string, us: number): void {
    this.#durations.measure(name, us);
  }

  #pump(): void {
    if (!this.isOpen) return;
    if (this.#host.hasTagged()) {
      for (const session of this.#sessions) this.#prepare(session);
    }
    this.#feedIdle();
    this.#evenSoon();
  }

  #feedIdle(): void {
    for (const session of this.#idle) {
      const hasWork = !session.canTake || this.#feed(session, false);
      session.flush();
      if (!hasWork) return;
      this.#idle.delete(session);
    }
  }

  /** False: nothing is left in line. */
  #feed(session: Session, inAdvance: boolean): boolean {
    const { capacity } = session.status;
    for (;;) {
      const isBusy = session.running >= capacity;
      const isFull = session.expectedUs >= AHEAD_US || session.running >= capacity * MAX_AHEAD;
      // What cannot even be sent is better kept in line, and its memory with it.
      if (isBusy && (!inAdvance || isFull || session.channel.isFull)) return true;
      const closure = this.#host.take();
      if (closure === undefined) return false;
      const { work } = closure;
      if (work.kind === 'call') {
        session.add(closure, work, this.#durations.of(work.name) ?? AHEAD_US);
      }
    }
  }

  #evenSoon(): void {
    if (this.#isEvenDue || this.#idle.size === 0) return;
    this.#isEvenDue = true;
    setImmediate(() => {
      this.#isEvenDue = false;
      this.#even();
    });
  }

  /** One has more than it can run at once, while another has nothing to do. */
  #even(): void {
    const isIdle = (session: Session): boolean =>
      session.canTake && session.running < session.status.capacity;
    if (![...this.#idle].some(isIdle)) return;
    let fullest: Session | undefined;
    for (const session of this.#sessions) {
      const most = fullest?.running ?? session.status.capacity;
      if (session.canTake && session.running > most) fullest = session;
    }
    if (fullest === undefined || fullest.isRecalling) return;
    const more = fullest.running - fullest.status.capacity;
    fullest.recall(Math.ceil(more / 2));
  }

  #prepare(session: Session): void {
    for (;;) {
      const closure = this.#host.takeTagged(session.task);
      if (closure === undefined || closure.work.kind === 'call') return;
      session.prepare(closure.work);
    }
  }
}
