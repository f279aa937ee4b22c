/**
 * The seam between the closures' rules, which are the same everywhere, and what carries
 * closures to workers.
 */

import type { Coordinator } from '../../coordinator/coordinator.ts';
import type { ReadinessReport } from '../../errors/readiness-report.ts';
import type { Closure, ClosureOutcome } from './closure.ts';

export type WorkerInfo = {
  job: string;
  task: number;
  /** 'lost': it has died and is being replaced; 'stuck': a thread that cannot be ended. */
  state: 'starting' | 'idle' | 'busy' | 'lost' | 'stuck';
  host: string;
  /**
   * Of the program, if it is a thread. Of a process that is lost: what it was, until another
   * has come; NaN, which `process.kill` refuses, if none could be started.
   */
  pid: number;
  running: number;
  completed: number;
  restarts: number;
};

/** What a strategy calls: the side of the rules. */
export interface StrategyHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  /** The next closure; it is in flight from here on. */
  take(): Closure | undefined;
  /** What that worker has to do before anything else. */
  takeTagged(worker: number): Closure | undefined;
  /** Whether any worker has something to do before anything else. */
  hasTagged(): boolean;
  /** That worker is new: what it needs comes into its own line. */
  prepare(worker: number): void;
  /** Its run has ended, after so many microseconds if it was one. */
  ended(closure: Closure, outcome: ClosureOutcome, microseconds?: number): void;
  /** Its worker is lost, or it was taken back. */
  returned(closure: Closure, wasStarted: boolean, cause?: unknown): void;
  /** Readiness or the state of workers is another. */
  changed(): void;
  /** No worker will come any more. */
  failed(error: Error): void;
}

export type Cancellation = {
  reason: unknown;
  /** After the grace period the worker is replaced. */
  replace: boolean;
};

/** What the rules call: the side of the workers. Nothing here throws. */
export interface Engine {
  /** There may be something to take. */
  wake(): void;
  /** Asks the run of a closure in flight to end; it ends or is lost later. */
  cancel(closure: Closure, cancellation: Cancellation): void;
  /** Whether the program waits for something: else workers keep it from nothing. */
  setNeeded(needed: boolean): void;
  /** Shared memory arrives as such. Else, or if this is left out, it is refused. */
  readonly sharesMemory?: boolean;
  /** The workers that have begun, by number; the others will be prepared. */
  readonly indexes: number[];
  readonly workers: WorkerInfo[];
  report(): ReadinessReport;
  /** What it has counted, by name. */
  stats(): Record<string, number>;
  /** Names of the module's functions; undefined until a worker has told. */
  readonly functions: readonly string[] | undefined;
  /** Ends the workers, after asking what runs. */
  close(): Promise<void>;
}

/** Where workers live. Made by the user, used by one ClusterCoordinator. */
export interface Strategy {
  /** The module of the functions. */
  readonly module: URL;
  /** @internal */
  connect(host: StrategyHost): Engine;
}
