/** The newest of the values that a function has reported, each packed: bounded, for slow readers. */
export class RecentValues {
  readonly #most: number;
  readonly #mostBytes: number;
  #values: Uint8Array[] = [];
  #bytes = 0;
  /** The number of the first value that is kept; from 0. */
  first = 0;

  /** @param mostBytes - one value is kept, however long it is */
  constructor(most: number, mostBytes: number) {
    this.#most = most;
    this.#mostBytes = mostBytes;
  }

  /** The number that the next value will have. */
  get end(): number {
    return this.first + this.#values.length;
  }

  add(value: Uint8Array): void {
    this.#values.push(value);
    this.#bytes += value.byteLength;
    const isTooMuch = this.#values.length > this.#most || this.#bytes > this.#mostBytes;
    if (isTooMuch) this.#shorten();
  }

  /** @param number - from `first` to `end` - 1 */
  at(number: number): Uint8Array {
    return this.#values[number - this.first] as Uint8Array;
  }

  takeAll(): Uint8Array[] {
    const all = this.#values;
    this.first = this.end;
    this.#values = [];
    this.#bytes = 0;
    return all;
  }

  /** Drops the oldest values, a quarter of what is permitted at once: so each costs little. */
  #shorten(): void {
    let dropped = 0;
    const isLong = (): boolean => {
      const left = this.#values.length - dropped;
      return left > this.#most * 0.75 || this.#bytes > this.#mostBytes * 0.75;
    };
    while (dropped < this.#values.length - 1 && isLong()) {
      this.#bytes -= (this.#values[dropped] as Uint8Array).byteLength;
      dropped += 1;
    }
    this.#values = this.#values.slice(dropped);
    this.first += dropped;
  }
}
