/**
 * What a function has reported and its worker has not sent: at once, or, when a message was sent a
 * moment ago, together with what is reported meanwhile. So a function that reports without end
 * floods nobody: of what comes faster than messages go, the oldest is dropped.
 */

import { RecentValues } from './recent-values.ts';

const INTERVAL_MS = 10;
const MOST = 4_096;
const MOST_BYTES = 256 * 1024;

export class ProgressOutbox {
  readonly #send: (values: Uint8Array[]) => void;
  readonly #waiting = new RecentValues(MOST, MOST_BYTES);
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (values: Uint8Array[]) => void) {
    this.#send = send;
  }

  add(value: Uint8Array): void {
    this.#waiting.add(value);
    // Tested here too, since the timer of a function that does not yield never fires.
    if (performance.now() - this.#sentAt >= INTERVAL_MS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), INTERVAL_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentAt = performance.now();
    const values = this.#waiting.takeAll();
    if (values.length > 0) this.#send(values);
  }
}
