/** Functions that are called when the workers' states, the queue or the data sets have changed. */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();

  notify(): void {
    for (const look of this.#listeners) look();
  }

  add(look: () => void): void {
    this.#listeners.add(look);
  }

  delete(look: () => void): void {
    this.#listeners.delete(look);
  }

  /** Resolves when `predicate` returns true. It is called now and after each change. */
  until(predicate: () => boolean): Promise<void> {
    if (predicate()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (!predicate()) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
    });
  }
}
