import type { Coordinator } from 'allstop';

export type WorkerPoolStats = {
  /** The number of threads that wait for a job. */
  waiting: number;
  /** The number of jobs that wait for a thread. */
  queued: number;
  /** The number of completed jobs. */
  done: number;
  /** The number of primes that the completed jobs have found. */
  total: number;
  /** 'name: message' of the error that stopped the threads; '' if there was none. */
  stoppedBy: string;
};

/** A pool of C++ threads that take jobs from one queue. */
export declare class WorkerPool {
  /**
   * Starts the threads. They end when `coord` stops, or when the pool is closed and has
   * no job left; `await coord.join()` waits for that, and throws what they throw.
   */
  constructor(coord: Coordinator, options?: { threads?: number });
  /** Queues a job: count the primes below `limit`. A negative limit makes its thread fail. */
  push(limit: number): void;
  /** Closes the queue: the threads end when it is empty. */
  close(): void;
  get stats(): WorkerPoolStats;
}
