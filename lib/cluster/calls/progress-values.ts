/** `RemoteValue.progress`: what a function has reported, for any number of readers. */

import { RecentValues } from '../../pool/worker/recent-values.ts';
import { unpackValue } from '../../values/value.ts';

const MOST = 4_096;
const MOST_BYTES = 1024 * 1024;

export class ProgressValues implements AsyncIterable<unknown> {
  readonly #recent = new RecentValues(MOST, MOST_BYTES);
  #hasEnded = false;
  #wake: (() => void)[] = [];

  add(values: readonly Uint8Array[]): void {
    for (const value of values) this.#recent.add(value);
    this.#wakeAll();
  }

  /** The function reports no more. */
  end(): void {
    this.#hasEnded = true;
    this.#wakeAll();
  }

  /** Each reader begins with the oldest value that is kept. */
  async *[Symbol.asyncIterator](): AsyncGenerator<unknown, undefined> {
    const recent = this.#recent;
    for (let next = 0; ; ) {
      next = Math.max(next, recent.first); // what was dropped meanwhile is skipped
      if (next < recent.end) {
        next += 1;
        yield unpackValue(recent.at(next - 1));
      } else if (this.#hasEnded) return undefined;
      else await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #wakeAll(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const each of wake) each();
  }
}
