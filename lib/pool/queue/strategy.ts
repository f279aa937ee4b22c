/**
 * The seam between the rules about calls, which are the same for every strategy, and the
 * engines, which carry calls to workers. The rules implement StrategyHost; a strategy's
 * engine implements Engine.
 */

import type { Coordinator } from '../../coordinator/coordinator.ts';
import type { NodeHealth, ReadinessReport } from '../../errors/phases.ts';
import type { Fate, Resource, WorkerResource } from '../worker/messages.ts';
import type { Definition, VariableSource } from '../worker/variables.ts';
import type { Call } from './call.ts';
import type { Placement, Resources } from './call-lines.ts';
import type { Outcome, QueuedCalls } from './call-queue.ts';

/** One worker of a cluster, at the moment when `workers` was read. */
export type WorkerInfo = {
  /** Its job and index: `worker:0`. */
  name: string;
  /** The job of the worker: 'worker', or another of the ClusterSpec. */
  job: string;
  /**
   * The index of the worker in its job, from 0: the option `worker` of a call, and `workerIndex` in a
   * function. A worker that replaces another keeps it.
   */
  index: number;
  /**
   * 'starting': the worker imports the module, runs `setup` or makes data sets; 'idle': it is ready
   * and has no function; 'busy': it has functions; 'lost': it has died and is being replaced;
   * 'left', over NATS: it has ended in order; 'stuck': a thread that is blocked in native code and cannot be ended.
   */
  state: 'starting' | 'idle' | 'busy' | 'lost' | 'left' | 'stuck';
  /** The name of the worker's machine; empty if it is not known. */
  host: string;
  /**
   * The pid of the program if the worker is a thread. A lost process keeps its pid here until
   * its successor has started; NaN, which `process.kill` refuses, if the process could not be
   * started.
   */
  pid: number;
  /** How many functions were sent to the worker and have not ended. */
  running: number;
  /** How many functions have ended on this worker and those that it replaces. */
  completed: number;
  /** How often a worker was started in the place of one that had died. */
  restarts: number;
  /** Over NATS, of a node that has answered a probe. */
  health?: NodeHealth;
  /** Over NATS: what the worker has (`allstop worker --resources`). Left out: nothing. */
  resources?: Resources;
  /**
   * The calls whose functions the worker runs, as many as its `concurrency`; of a node, one a thread. What
   * the worker was only sent is not among them. Of a node it is what was sent first, which its
   * threads take first.
   */
  calls: RunningCall[];
};

/** A call whose function a worker runs. */
export type RunningCall = {
  /** The name of the export. */
  name: string;
  /** How often the function has been run, this time included: from 1. */
  attempt: number;
  /**
   * When it was sent; or when the last function before it ended, if that was later, and the worker
   * runs one at a time.
   */
  startedAt: Date;
};

/** Told once, with a value of STATE, and the packed result or an encoded error. */
export type DrawAnswer = (state: number, bytes: Uint8Array) => void;

/** The methods that an engine calls. */
export interface StrategyHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  /** How many more deaths of workers than one fail the data set that they were making. */
  readonly retries: number;
  readonly variables: VariableSource;
  readonly queue: QueuedCalls<Call>;
  /** What each worker that has loaded the module makes before it takes calls. */
  readonly resources: Iterable<WorkerResource>;
  /**
   * An attempt has ended. `microseconds` is how long the function ran; left out if it was
   * not started.
   */
  ended(call: Call, outcome: Outcome, microseconds?: number): void;
  /** The function of a call in flight has run for its `runTimeoutMs`. `cancel` may follow. */
  overdue(call: Call): void;
  /** The function of a call in flight has reported values, each of which is packed. */
  progressed(call: Call, values: readonly Uint8Array[]): void;
  /**
   * The call's worker is lost (`cause` says why), or the call was recalled (no cause). A
   * call that was, or may have been, running there is a suspect: it is queued again behind all
   * others, or fails.
   * Any other is queued again ahead of all others.
   */
  returned(call: Call, fate: Fate, cause?: unknown): void;
  /**
   * A thread of a node uses an iterator that another thread has made: `request` is the packed
   * arguments of a DRAW, `answer` takes its packed result or an encoded error.
   */
  draw?(request: Uint8Array, answer: DrawAnswer): void;
  /** Something has happened that the program may hear of. */
  tell(...event: EngineEvent): void;
  /** `Engine.report()`, `workers` or `functions` have changed. */
  changed(): void;
  /** No worker will ever start any more: all calls fail with this error. */
  failed(error: Error): void;
}

/** What an engine tells, by the names of the cluster's events. */
export type EngineEvent =
  /** A worker has become ready, for the first time or again. */
  | [event: 'workerStarted', worker: WorkerInfo]
  /** A worker has died, and will be replaced. */
  | [event: 'workerLost', worker: WorkerInfo, error: Error]
  /** A thread is blocked in native code and cannot be ended. Another takes its place. */
  | [event: 'workerStuck', worker: WorkerInfo]
  /** The connection to the servers is lost, or an attempt to connect has failed since. */
  | [event: 'disconnected', error: Error]
  /** There is a connection again. */
  | [event: 'reconnected'];

/** Calls that wait, and functions that have failed in the last minutes. */
export type QueuedWork = {
  waiting: number;
  /** The function of the call that has waited longest, and for how long. */
  oldest?: { name: string; ms: number };
  /** Why no worker can take the oldest call for which that is so, which may stand behind others. */
  blocked?: string;
  failures: { name: string; count: number; last: string }[];
};

/** The host of an engine whose workers may be away and come back. */
export interface ClusterHost extends StrategyHost {
  readonly resources: Iterable<Resource>;
  /** What waits and what has failed lately, for an operator. */
  work(): QueuedWork;
  /**
   * A worker whose calls were `returned` is back and still has these. `given`: by call,
   * as what it was returned. Those that are queued are in flight on that worker again, and their
   * attempt goes on.
   *
   * @returns the calls that are in flight on that worker again
   */
  reclaim(given: ReadonlyMap<Call, Fate>): Call[];
  /**
   * A worker that was given up has ended a call that is another's meanwhile. The first result
   * counts.
   *
   * @returns whether this is the first
   */
  offered(call: Call, outcome: Outcome, microseconds: number): boolean;
}

export type Cancellation = {
  reason: unknown;
  /** Whether the worker is replaced if the function has not ended after `cancelGraceMs`. */
  replace: boolean;
};

/** The methods that the rules call. None throws. */
export interface Engine {
  /** `queue.take` may return a call now. */
  wake(): void;
  /** The workers that have loaded the module make this before they take calls. */
  prepare(resource: Resource): void;
  /** Asks the attempt of a call in flight to end; `ended` or `returned` follows. */
  cancel(call: Call, cancellation: Cancellation): void;
  /**
   * Tells the engine whether its workers have to keep the program alive. They have to while the
   * program waits for a promise of the cluster, and while a call is queued or in flight.
   */
  setNeeded(needed: boolean): void;
  /** Nobody has the data set or iterator of this id any more. */
  forget(id: number): void;
  /** A variable was made in the memory of this process. Left out by an engine that keeps them. */
  define?(definition: Definition): void;
  /**
   * Resolves when it is certain that, at some time since the call, no other program had taken over
   * what the engine runs on. Left out by an engine that nobody can take over. What this program
   * writes outside itself (a checkpoint, a result) is written only then.
   *
   * @throws (rejects) FailedPreconditionError: another has, or the cluster is closed;
   *   UnavailableError: it cannot be found out
   */
  assertHeld?(): Promise<void>;
  /** Whether arguments may contain SharedArrayBuffers. False if it is left out. */
  readonly sharesMemory?: boolean;
  readonly workers: WorkerInfo[];
  /** How many functions can run at once, now. */
  readonly capacity: number;
  /**
   * @returns why there will never be a worker that may run calls with this placement; undefined
   *   if there is one, or may be one day
   */
  whyNowhere(placement: Placement): string | undefined;
  /** Why no worker can take a call with this placement; undefined: one can, if it is not busy. */
  whyBlocked(placement: Placement | undefined): string | undefined;
  report(): ReadinessReport;
  /** The engine's counters, by name. */
  stats(): Record<string, number>;
  /** Names of the module's functions; undefined until a worker has reported them. */
  readonly functions: readonly string[] | undefined;
  /**
   * Changes the number of workers. Resolves when that many workers are ready; rejects when a new
   * worker cannot be started. Left out if the engine does not start its workers itself.
   */
  resize?(workers: number): Promise<void>;
  /** `close` will be called: tells the functions that run. Left out by an engine that cannot. */
  leave?(): void;
  /** Ends the workers. Resolves when they have ended, or were found to be stuck. */
  close(): Promise<void>;
}

/** Says where workers live. Made by the user, for one pool or ClusterCoordinator. */
export interface Strategy<E extends Engine = Engine> {
  /** The module whose exports can be scheduled. */
  readonly module: URL;
  /** The version of the program, as the user names it. */
  readonly definition?: string | undefined;
  /** @internal */
  connect(host: ClusterHost): E;
}
