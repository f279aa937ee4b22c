/** The seam between calls with a key and the stores that keep their results. */

/** Lets a few asynchronous operations run at once; the others wait, in the order of their calls. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  async take<T>(body: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await body();
    } finally {
      const next = this.#waiting.shift(); // which takes over this turn
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/**
 * Keeps records by name. Each is whole or not there, also if two programs put one at once: then the
 * last one counts. A name has 64 hexadecimal digits.
 */
export interface ResultStore {
  /** @throws (rejects) UnavailableError: the store cannot be read */
  get(name: string): Promise<Uint8Array | undefined>;
  /**
   * Resolves when the record survives the death of this program.
   *
   * @param mayWrite - awaited before the record becomes visible, at each attempt: it rejects if the
   *   program may write no more
   * @throws (rejects) UnavailableError: the store cannot be written; the error of `mayWrite`
   */
  put(name: string, record: Uint8Array, mayWrite: () => Promise<void>): Promise<void>;
  /** Where the record of this name is, for messages. */
  whereIs(name: string): string;
  /** Resolves when nothing of the store keeps the program alive. Nothing is called afterwards. */
  close(): Promise<void>;
}
