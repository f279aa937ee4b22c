/** Objects by id. Holds them weakly: an entry goes when its object has been collected. */
export class WeakById<T extends object> {
  readonly #refs = new Map<string, WeakRef<T>>();
  readonly #collected = new FinalizationRegistry<string>((id) => {
    // By now another object may have the id: its entry has to stay.
    if (this.get(id) === undefined) this.#refs.delete(id);
  });

  get(id: string): T | undefined {
    return this.#refs.get(id)?.deref();
  }

  *values(): IterableIterator<T> {
    for (const ref of this.#refs.values()) {
      const object = ref.deref();
      if (object !== undefined) yield object;
    }
  }

  set(id: string, object: T): void {
    this.#refs.set(id, new WeakRef(object));
    this.#collected.register(object, id);
  }
}
