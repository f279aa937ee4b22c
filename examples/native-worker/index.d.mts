import type { Coordinator } from 'allstop';

export type WorkerPoolStats = {
  /** Threads without a job. */
  waiting: number;
  /** Jobs without a thread. */
  queued: number;
  /** Jobs that are done. */
  done: number;
  /** How many primes they have found. */
  total: number;
  /** 'name: message' of the error that stopped the threads; '' if there was none. */
  stoppedBy: string;
};

/** C++ threads that take jobs from one queue. */
export declare class WorkerPool {
  /**
   * Starts the threads. They end when `coord` stops, or when the pool is closed and has
   * no job left; `await coord.join()` waits for that, and throws what they throw.
   */
  constructor(coord: Coordinator, options?: { threads?: number });
  /** A job: count the primes below `limit`. A negative limit makes its thread fail. */
  push(limit: number): void;
  /** No more jobs. */
  close(): void;
  get stats(): WorkerPoolStats;
}
