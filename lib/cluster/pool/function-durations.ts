/** How long functions take, as far as that can be told from their last runs. */

/** Handing one over costs something, too: nothing takes no time. */
const HANDED_OVER_US = 2;

export class FunctionDurations {
  /** Microseconds, on average, by the name of the function. */
  readonly #us = new Map<string, number>();

  measure(name: string, us: number): void {
    const known = this.#us.get(name);
    const spent = us + HANDED_OVER_US;
    this.#us.set(name, known === undefined ? spent : known + (spent - known) / 8);
  }

  /** Microseconds; undefined: it has not run yet. */
  of(name: string): number | undefined {
    return this.#us.get(name);
  }
}
