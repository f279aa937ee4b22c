/** Errors that are kept alive for a while, so that they keep their identity. */

import type { Carried } from './error-identity.ts';

/** How many are kept. */
const LIMIT = 64;

export class RecentErrors {
  readonly #held = new Map<string, Carried>(); // by id, the oldest first

  hold(carried: Carried): void {
    this.#held.delete(carried.id);
    this.#held.set(carried.id, carried);
    if (this.#held.size > LIMIT) {
      for (const oldest of this.#held.keys()) {
        this.#held.delete(oldest);
        break;
      }
    }
  }

  clear(): void {
    this.#held.clear();
  }
}
