/**
 * How many items `map` may have pulled and not yielded. Without a number from the user: twice as
 * many as the workers run at once, so that each has its next item when it has ended one. Where
 * functions are so short that messages take longer than they do, that would leave workers waiting:
 * then it grows to what comes out in HORIZON_MS, so that many items share a message.
 */

const HORIZON_MS = 10;
/** The look-ahead grows when this many items have come out, no sooner. */
const SLOW_START = 128;
/** The time is taken after this many items, no sooner. */
const ROUND = 64;
const MOST = 8_192;

export class LookAhead {
  readonly #isFixed: boolean;
  readonly #capacity: () => number;
  #most: number;
  #total = 0;
  /** The items that have come out since #began (performance.now()). */
  #count = 0;
  #began = 0;

  /** @param fixed - the number that the user has given */
  constructor(fixed: number | undefined, capacity: () => number) {
    this.#isFixed = fixed !== undefined;
    this.#most = fixed ?? 0;
    this.#capacity = capacity;
  }

  /** How many items may be pulled and not yielded. */
  get most(): number {
    return this.#isFixed ? this.#most : Math.max(this.#most, this.#least);
  }

  /** Whether it is time to pull until `ahead` is `most`: where many go together, many at a time. */
  isDue(ahead: number): boolean {
    const { most } = this;
    return ahead < most && (this.#isFixed || most === this.#least || ahead <= most / 2);
  }

  /** An item was yielded. */
  yielded(): void {
    if (this.#isFixed) return;
    this.#total += 1;
    this.#count += 1;
    if (this.#total < SLOW_START || this.#count < Math.max(ROUND, this.#most)) return;
    const now = performance.now();
    const perMs = this.#count / Math.max(0.001, now - this.#began);
    if (this.#began > 0) this.#most = Math.min(MOST, Math.floor(perMs * HORIZON_MS));
    this.#count = 0;
    this.#began = now;
  }

  get #least(): number {
    return 2 * Math.max(1, this.#capacity());
  }
}
