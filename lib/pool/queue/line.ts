/**
 * A line, first in, first out, whose items may leave from anywhere: an item that has left stays
 * in the arrays, where it is skipped, until most items there have left. So each call takes the
 * same time on average, however long the line is.
 */
export class Line<T> {
  readonly #isHere: (item: T) => boolean;
  #head: T[] = []; // reversed: the next item is at the end
  #tail: (T | undefined)[] = [];
  #next = 0; // in #tail
  #size = 0;
  /** The number of items in the arrays that have left. */
  #left = 0;

  /** @param isHere - false from the moment on in which an item leaves other than by `shift` */
  constructor(isHere: (item: T) => boolean) {
    this.#isHere = isHere;
  }

  get size(): number {
    return this.#size;
  }

  /** All items, in order. */
  get items(): T[] {
    return this.#all().filter(this.#isHere);
  }

  push(item: T): void {
    this.#size += 1;
    this.#tail.push(item);
  }

  unshift(item: T): void {
    this.#size += 1;
    this.#head.push(item);
  }

  /** The first item, which stays in the line. */
  first(): T | undefined {
    for (;;) {
      const item = this.#head.length > 0 ? this.#head.at(-1) : this.#tail[this.#next];
      if (item === undefined || this.#isHere(item)) return item;
      this.#drop();
      this.#left -= 1;
    }
  }

  shift(): T | undefined {
    const item = this.first();
    if (item === undefined) return undefined;
    this.#size -= 1;
    this.#drop();
    return item;
  }

  /** Has to be called when `isHere` has become false for an item of the line. */
  hasLeft(): void {
    this.#size -= 1;
    this.#left += 1;
    if (this.#left <= this.#size) return;
    this.#tail = this.#size === 0 ? [] : this.items;
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
  }

  /** Removes the items for which `isWanted` is true, and returns them in order. */
  takeAll(isWanted: (item: T) => boolean = () => true): T[] {
    const here = this.items;
    const taken = here.filter(isWanted);
    this.#tail = here.filter((item) => !isWanted(item));
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
    this.#size = this.#tail.length;
    return taken;
  }

  #all(): T[] {
    return [...this.#head.toReversed(), ...(this.#tail.slice(this.#next) as T[])];
  }

  /** Takes the first item out of the arrays. */
  #drop(): void {
    if (this.#head.length > 0) {
      this.#head.pop();
      return;
    }
    this.#tail[this.#next] = undefined; // so that the array does not keep the item alive
    this.#next += 1;
    if (this.#next > 1_024 && this.#next * 2 > this.#tail.length) {
      this.#tail = this.#tail.slice(this.#next);
      this.#next = 0;
    }
  }
}
