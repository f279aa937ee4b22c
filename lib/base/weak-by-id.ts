/** Objects by id. Holds them weakly: an entry goes when its object has been collected. */
export class WeakById<T extends object> {
  readonly #refs = new Map<string, WeakRef<T>>();
  readonly #collected: FinalizationRegistry<{ id: string; note: number }>;

  /** `onGone`: called with the note of an object that was collected. */
  constructor(onGone: (note: number) => void = () => {}) {
    this.#collected = new FinalizationRegistry(({ id, note }) => {
      // By now another object may have the id: its entry has to stay.
      if (this.get(id) === undefined) this.#refs.delete(id);
      onGone(note);
    });
  }

  get(id: string): T | undefined {
    return this.#refs.get(id)?.deref();
  }

  *values(): IterableIterator<T> {
    for (const ref of this.#refs.values()) {
      const object = ref.deref();
      if (object !== undefined) yield object;
    }
  }

  set(id: string, object: T, note = 0): WeakRef<T> {
    const ref = new WeakRef(object);
    this.#refs.set(id, ref);
    this.#collected.register(object, { id, note });
    return ref;
  }
}
