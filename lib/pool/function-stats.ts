/** Counts and durations of the functions of a cluster, by name, and how busy its workers are. */

import type { Call } from './queue/call.ts';
import type { Outcome } from './queue/call-queue.ts';
import type { WorkerInfo } from './queue/strategy.ts';

// Durations, counted in buckets that are 1/16 wide: as exact as a dashboard needs, with the same
// small memory however many there are. (Node's own `createHistogram` is not in every runtime.)

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

class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;
  #maxUs = 0;

  add(microseconds: number): void {
    const bucket = Math.floor(Math.log2(Math.max(1, microseconds)) * STEPS);
    const at = Math.min(bucket, BUCKETS - 1);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
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
      seen += this.#counts[at] ?? 0;
      if (seen >= wanted) return Math.min(2 ** ((at + 1) / STEPS), this.#maxUs) / 1_000;
    }
    return this.#maxUs / 1_000;
  }
}

/** Counts since the cluster was made. */
export type FunctionStats = {
  /** Ended with a result. */
  completed: number;
  /** Ended with an error. */
  failed: number;
  /** Cancelled before their end. */
  cancelled: number;
  /** How often it was run again: its worker was lost, or `retryOn` said so. */
  retried: number;
  /** Milliseconds from the call until a worker took it. */
  waitMs: Percentiles;
  /** Milliseconds that it ran, of all that ended with a result or an error. */
  runMs: Percentiles;
};

class FunctionRecord {
  readonly counts: Record<Outcome['state'], number> = { ready: 0, failed: 0, cancelled: 0 };
  retried = 0;
  readonly wait = new Histogram();
  readonly run = new Histogram();

  get stats(): FunctionStats {
    const { ready: completed, failed, cancelled } = this.counts;
    const waitMs = this.wait.percentiles();
    const runMs = this.run.percentiles();
    return { completed, failed, cancelled, retried: this.retried, waitMs, runMs };
  }
}

export class FunctionStatistics {
  /** Of all functions together. */
  readonly counts: Record<Outcome['state'], number> = { ready: 0, failed: 0, cancelled: 0 };
  readonly #records = new Map<string, FunctionRecord>();
  /** How long functions have run, together, and how long workers were there for them. */
  #runMs = 0;
  #capacityMs = 0;
  #capacity = 0;
  #countedAt: number = performance.now();

  onSettled(call: Call, { state, isKept }: Outcome): void {
    if (isKept === true) return;
    this.counts[state] += 1;
    const record = this.#record(call);
    record.counts[state] += 1;
    const { waitedMs } = call;
    if (waitedMs !== undefined) record.wait.add(waitedMs * 1_000);
  }

  onRun(call: Call, microseconds: number): void {
    this.#record(call).run.add(microseconds);
    this.#runMs += microseconds / 1_000;
  }

  onRetry(call: Call): void {
    this.#record(call).retried += 1;
  }

  /** The number of functions that can run at once has changed, or may have. */
  setCapacity(capacity: number): void {
    const now = performance.now();
    this.#capacityMs += this.#capacity * (now - this.#countedAt);
    this.#capacity = capacity;
    this.#countedAt = now;
  }

  get functions(): Record<string, FunctionStats> {
    const entries = [...this.#records].map(([name, { stats }]) => [name, stats] as const);
    return Object.fromEntries(entries);
  }

  /** The share of the workers' time that functions have run, or run now. */
  utilization(workers: readonly WorkerInfo[]): number {
    this.setCapacity(this.#capacity);
    if (this.#capacityMs === 0) return 0;
    const now = Date.now();
    const running = workers.flatMap(({ calls }) => calls);
    const runningMs = running.reduce((sum, { startedAt }) => sum + now - startedAt.getTime(), 0);
    return Math.max(0, Math.min(1, (this.#runMs + runningMs) / this.#capacityMs));
  }

  #record({ work }: Call): FunctionRecord {
    const { name } = work;
    let record = this.#records.get(name);
    if (record === undefined) this.#records.set(name, (record = new FunctionRecord()));
    return record;
  }
}
