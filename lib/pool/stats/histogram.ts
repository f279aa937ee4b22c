/**
 * Durations, counted in buckets that are 1/16 wide: as exact as a dashboard needs, with the same
 * small memory however many there are. (Node's own `createHistogram` is not in every runtime.)
 */

/** How durations are spread, in milliseconds. */
export type Percentiles = {
  /** The median: half of the durations are not longer. */
  p50: number;
  /** 90 % of the durations are not longer. */
  p90: number;
  /** 99 % of the durations are not longer. */
  p99: number;
  /** The longest duration. */
  max: number;
};

const STEPS = 16;
/** From 1 µs to 2^48 µs, nine years. */
const BUCKETS: number = 48 * STEPS;

export class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;
  #maxUs = 0;

  add(microseconds: number): void {
    const bucket = Math.floor(Math.log2(Math.max(1, microseconds)) * STEPS);
    const at = Math.min(bucket, BUCKETS - 1);
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#total += 1;
    if (microseconds > this.#maxUs) this.#maxUs = microseconds;
  }

  /** The maximum is exact; a percentile is at most 5 % too high. All are 0 if nothing was added. */
  percentiles(): Percentiles {
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => this.#percentile(share));
    return { p50, p90, p99, max: this.#maxUs / 1_000 } as Percentiles;
  }

  #percentile(share: number): number {
    const wanted = Math.ceil(this.#total * share);
    let seen = 0;
    if (wanted === 0) return 0;
    for (let at = 0; at < BUCKETS; at += 1) {
      seen += this.#counts[at] as number;
      if (seen >= wanted) return Math.min(2 ** ((at + 1) / STEPS), this.#maxUs) / 1_000;
    }
    return this.#maxUs / 1_000;
  }
}
