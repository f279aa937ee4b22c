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
