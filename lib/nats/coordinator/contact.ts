/** What is known of the contact with one node: whether it replies to probes (probes.ts), and how it does. */

import type { NodeHealth } from '../../errors/phases.ts';

/** Nobody listens at the node's subject. */
export type Absence = {
  /** For how long, by probes. */
  readonly ms: number;
  readonly at: number;
  /** It is no node that may still have to reconnect, as we had to. */
  readonly isSure: boolean;
};

type State =
  | { readonly is: 'there' }
  /** `missed`: probes without a reply, in a row. */
  | { readonly is: 'missing'; readonly missed: number; readonly absence: Absence | undefined };

/** What has happened. `reconnected`: what was missed over our last connection does not count. */
type Event =
  | { readonly is: 'heard' | 'reconnected' | 'missed' }
  | { readonly is: 'nobody'; readonly absence: Absence };

function after(state: State, event: Event): State {
  const { missed, absence } = state.is === 'there' ? { missed: 0, absence: undefined } : state;
  if (event.is === 'missed') return { is: 'missing', missed: missed + 1, absence };
  if (event.is === 'nobody') return { is: 'missing', missed, absence: event.absence };
  return { is: 'there' };
}

export class Contact {
  #state: State = { is: 'there' };
  #heardAt: number = performance.now();
  /** When the last probe was sent; 'out': it is on its way. */
  #probe: number | 'out' = 0;
  #livedAt: number = performance.now();
  #health: NodeHealth | undefined;

  get isThere(): boolean {
    return this.#state.is === 'there';
  }

  /** How many probes in a row had no reply. */
  get missed(): number {
    return this.#state.is === 'missing' ? this.#state.missed : 0;
  }

  get absence(): Absence | undefined {
    return this.#state.is === 'missing' ? this.#state.absence : undefined;
  }

  /** When (performance.now()) the node has given the last sign of life. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /**
   * When the last probe was sent that had a reply: the node lived then. What is heard of it may have
   * been on its way for long.
   */
  get livedAt(): number {
    return this.#livedAt;
  }

  /** What the last reply to a probe has told. */
  get health(): NodeHealth | undefined {
    return this.#health;
  }

  heard(): void {
    this.#heardAt = performance.now();
    this.#state = after(this.#state, { is: 'heard' });
  }

  /** Our own connection is back. */
  reconnected(): void {
    this.#state = after(this.#state, { is: 'reconnected' });
  }

  /** @returns whether a probe is to be sent now, which counts as sent */
  probe(now: number, everyMs: number): boolean {
    if (this.#probe === 'out' || now - this.#probe < everyMs) return false;
    this.#probe = 'out';
    return true;
  }

  /** The probe that was sent then has its reply, or will have none. */
  probed(sentAt: number): void {
    this.#probe = sentAt;
  }

  replied(health: NodeHealth, sentAt: number): void {
    this.#livedAt = sentAt;
    this.#health = health;
  }

  missedOne(): void {
    this.#state = after(this.#state, { is: 'missed' });
  }

  /** A probe has found nobody. `stepMs`: as long as one probe may count. */
  foundNobody(stepMs: number, isSure: (ms: number) => boolean): Absence {
    const now = performance.now();
    const before = this.absence ?? { ms: 0, at: now, isSure: false };
    const ms = before.ms + Math.min(now - before.at, stepMs);
    const absence = { ms, at: now, isSure: before.isSure || isSure(ms) };
    this.#state = after(this.#state, { is: 'nobody', absence });
    return absence;
  }
}
