/**
 * The other coordinators of the same cluster, as far as they can be heard; all messages are on the
 * subject `who`, where all nodes and coordinators listen.
 *
 * 1. A run that holds the cluster says so (`who`) when it begins to, to the nodes above all; and again
 *    and again (`alive`), to coordinators.
 * 2. A run that is asked (`ask`) answers (`alive`, to the one that asked) only after it has signed the
 *    cluster's key since: so who answers held a key after the question.
 * 3. If this run has signed, another has answered then, and this run has signed again, each has a key
 *    of its own: in one key nobody takes the cluster back. The two are told (`onTwo`), each by itself.
 */

import { within } from '../../base/timer.ts';
import { type Alive, json, parseControl } from '../wire/control-messages.ts';
import type { Run } from './fence.ts';
import type { Leadership } from './leadership.ts';

/** How long a run that lives may take to answer. */
const ANSWER_MS = 5_000;
/** How long to wait for any run with a greater token to answer. */
const RIVAL_MS = 1_500;

export type OtherRunsListener = {
  send(message: Uint8Array): void;
  /** Another run of the same cluster lives, and holds another key. Called once for each. */
  onTwo(other: Alive): void;
};

export class OtherRuns {
  readonly #own: Omit<Run, 'token'>;
  readonly #leadership: Leadership;
  readonly #listener: OtherRunsListener;
  /** Those that this run meets now, or has met: each once. */
  readonly #met = new Set<string>();
  readonly #answers = new Set<(alive: Alive) => void>();

  constructor(own: Omit<Run, 'token'>, leadership: Leadership, listener: OtherRunsListener) {
    this.#own = own;
    this.#leadership = leadership;
    this.#listener = listener;
  }

  /**
   * Receives a message from another coordinator or a doctor (`who` with token 0, to which only nodes
   * reply).
   *
   * @returns false if it is malformed
   */
  receive(data: Uint8Array, reply: string | undefined): boolean {
    const message = parseControl(data, 'who', 'ask', 'alive');
    if (message === undefined) return false;
    const { run } = message;
    if (run === this.#own.run) return true;
    if (message.kind === 'ask') {
      if (message.of === this.#own.run || message.of === '') void this.#answer(run);
      return true;
    }
    this.#leadership.doubt(message.token, true);
    if (message.kind === 'who') {
      // An older run that does not know of this run yet learns of it by our `who`.
      const isOlder = message.token < (this.#leadership.token ?? 0);
      if (isOlder && (reply ?? '') === '') this.say();
      return true;
    }
    if (message.to === this.#own.run) for (const tell of this.#answers) tell(message);
    else void this.#meet(run);
    return true;
  }

  /** Tells all nodes and coordinators that this run holds the cluster, if we believe so. */
  say(): void {
    const { token, state } = this.#leadership;
    if (state.phase !== 'ready' || token === undefined) return;
    this.#listener.send(json({ kind: 'who', run: this.#own.run, token }));
  }

  /** Tells coordinators that this run holds the cluster; `to`: the one that has asked. */
  sayAlive(to?: string): void {
    const { token, state } = this.#leadership;
    if (state.phase !== 'ready' || token === undefined) return;
    const alive = { kind: 'alive', ...this.#own, token, ...(to !== undefined && { to }) };
    this.#listener.send(json(alive));
  }

  /** Whether the run answers that it holds the cluster. */
  async isAlive(run: string): Promise<boolean> {
    return (await this.#ask(run, ANSWER_MS, (alive) => alive.run === run)) !== undefined;
  }

  /** Whether any run with a greater token answers that it holds a key. */
  async hasRival(): Promise<boolean> {
    const own = this.#leadership.token ?? 0;
    return (await this.#ask('', RIVAL_MS, ({ token }) => token > own)) !== undefined;
  }

  async #ask(of: string, ms: number, is: (alive: Alive) => boolean): Promise<Alive | undefined> {
    let tell = (_alive: Alive): void => {};
    const answered = new Promise<Alive>((resolve) => {
      tell = (alive) => {
        if (is(alive)) resolve(alive);
      };
    });
    this.#answers.add(tell);
    this.#listener.send(json({ kind: 'ask', run: this.#own.run, of }));
    const answer = await within(ms, answered, () => undefined);
    this.#answers.delete(tell);
    return answer;
  }

  async #answer(to: string): Promise<void> {
    if (this.#leadership.state.phase !== 'ready') return;
    const holds = await this.#leadership.assertHeld().then(
      () => true,
      () => false,
    );
    if (holds) this.sayAlive(to);
  }

  /** Another run says that it holds the cluster, as this one believes to do. */
  async #meet(run: string): Promise<void> {
    if (this.#met.has(run) || this.#leadership.state.phase !== 'ready') return;
    this.#met.add(run);
    try {
      await this.#leadership.assertHeld();
      const other = await this.#ask(run, ANSWER_MS, (alive) => alive.run === run);
      if (other === undefined) {
        this.#met.delete(run);
        return;
      }
      await this.#leadership.assertHeld();
      this.#listener.onTwo(other);
    } catch {
      this.#met.delete(run); // this run has lost the cluster, and is told so, or JetStream is away
    }
  }
}
