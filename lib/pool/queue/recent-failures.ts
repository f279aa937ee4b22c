/** Which functions have failed in the last minutes, for an operator. */

import { messageOf } from '../../base/thrown-value.ts';

const LASTS_MS = 5 * 60_000;
const MOST_NAMES = 100;
const LONGEST_TEXT = 200;

type Entry = { since: number; at: number; count: number; last: string };

export class RecentFailures {
  readonly #entries = new Map<string, Entry>();

  note(name: string, error: unknown): void {
    const now = performance.now();
    const known = this.#entries.get(name);
    const last = messageOf(error).slice(0, LONGEST_TEXT);
    const isOld = known === undefined || now - known.since > LASTS_MS;
    if (known === undefined && this.#entries.size >= MOST_NAMES) return;
    const [since, count] = isOld ? [now, 1] : [known.since, known.count + 1];
    this.#entries.set(name, { since, at: now, count, last });
  }

  get recent(): { name: string; count: number; last: string }[] {
    const now = performance.now();
    return [...this.#entries].flatMap(([name, { at, count, last }]) =>
      now - at > LASTS_MS ? [] : [{ name, count, last }],
    );
  }
}
