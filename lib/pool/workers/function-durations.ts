/** How long functions are expected to run, by their last attempts. */

/** Added to each measured time for the cost of sending a closure, so that no function takes 0. */
const SENDING_US = 2;

export class FunctionDurations {
  /** Moving average in microseconds, by the name of the function. */
  readonly #us = new Map<string, number>();

  measure(name: string, us: number): void {
    const known = this.#us.get(name);
    const spent = us + SENDING_US;
    this.#us.set(name, known === undefined ? spent : known + (spent - known) / 8);
  }

  /** @returns microseconds; undefined if no attempt of the function has ended yet */
  of(name: string): number | undefined {
    return this.#us.get(name);
  }
}
