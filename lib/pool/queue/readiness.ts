/**
 * Whether workers can take functions. `ready()` of a cluster waits with a deadline; its error describes
 * the tasks that block, as does a warning while calls wait and no worker is there.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { shownWhole } from '../../base/inspect.ts';
import { setImmediate, Timer, turn } from '../../base/timer.ts';
import { ClusterNotReadyError, FailedPreconditionError } from '../../errors/errors.ts';
import { importing, type ReadinessReport, type TaskReadiness } from '../../errors/phases.ts';
import { watch } from './time-limits.ts';

/** Why a cluster can never become ready. */
export type NeverReady = {
  why: string;
  cause: unknown;
  isStop?: boolean;
  /** The program has closed it: no task is to blame. */
  isClose?: boolean;
  error?: Error;
};

type ReadyWait = {
  /** 'pool' or 'cluster'. */
  poolName: string;
  report: () => ReadinessReport;
  whyNever: () => NeverReady | undefined;
  /** Marks an error as an echo of the stop. */
  interrupted: (error: Error) => Error;
  changes: ChangeListeners;
  timeoutMs: number;
  signal: AbortSignal | undefined;
  onProgress: ((report: ReadinessReport) => void) | undefined;
};

/**
 * Rejects with ClusterNotReadyError, FailedPreconditionError (another program holds the cluster), the reason of `signal`, or the error that `onProgress` throws.
 */
export function whenReady(options: ReadyWait): Promise<void> {
  const { whyNever, interrupted, changes, timeoutMs, signal } = options;
  const onProgress = options.onProgress && AsyncLocalStorage.bind(options.onProgress);
  const report = (): ReadinessReport => shownWhole(options.report());
  const asked = new Error();
  Error.captureStackTrace(asked, whenReady);
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (settle: () => void): void => {
      isOver = true;
      unwatch();
      changes.delete(look);
      settle();
    };
    const notReady = (why: string, never?: NeverReady): void => {
      const found = report();
      const cause = never?.cause;
      const fields = cause === undefined ? { report: found } : { cause, report: found };
      const error = new ClusterNotReadyError(
        never?.isClose === true
          ? `The ${options.poolName} is not ready${why}`
          : describe(options.poolName, why, found),
        fields,
      );
      // Its own frames are those of a timer or a message: they say nothing about the program.
      error.stack = `${error.name}: ${error.message}${framesOf(asked)}`;
      const thrown = never?.isStop === true ? interrupted(error) : error;
      if (timeoutMs > 0) end(() => reject(thrown));
      else end(() => void turn().then(() => reject(thrown))); // a loop of such calls starves nothing
    };
    const look = (): void => {
      const found = report();
      try {
        onProgress?.(found);
      } catch (error) {
        end(() => reject(error as Error));
        return;
      }
      const never = whyNever();
      // The program has lost what it would have to become ready for.
      if (never?.error instanceof FailedPreconditionError) end(() => reject(never.error as Error));
      else if (never !== undefined) notReady(`: ${never.why}`, never);
      else if (found.ready) end(resolve);
    };
    const late = (): void => notReady(` after ${timeoutMs} ms`);
    const leftMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs;
    const unwatch = watch({ signal, timeoutMs, leftMs }, late, (reason) =>
      end(() => reject(reason as Error)),
    );
    changes.add(look);
    look();
    // Decided here: a worker may or may not become ready in the turn that a timer takes.
    if (timeoutMs === 0 && !isOver) late();
  });
}

/** The lines of the stack, each after a line break; the message of the error has none. */
const framesOf = ({ stack = '' }: Error): string => /\n[^]*/.exec(stack)?.[0] ?? '';

/** The message names at most this number of tasks; the report has all of them. */
const MOST_SHOWN = 10;

/**
 * A line with what is not ready, the engine first, as every task needs it; then a line for each:
 * since when, why, what to do.
 *
 * @param why - continues "The cluster is not ready"
 * @param pool - pool or cluster
 */
function describe(pool: string, why: string, { engine, tasks }: ReadinessReport): string {
  const blocking = tasks.filter(({ ready }) => !ready);
  const shown = blocking.slice(0, MOST_SHOWN);
  const names = shown.map(({ job, task, phase }) => `${job}:${task} ${phase}`);
  const left = blocking.length - shown.length;
  if (left > 0) names.push(`and ${left} more`);
  const isEngineShown = engine.phase !== 'ready' && engine.phase !== 'failed';
  if (isEngineShown) names.unshift(`the engine ${engine.phase}`);
  const which = names.length > 0 ? `. Blocking: ${names.join(', ')}` : '';
  const details = [
    ...(isEngineShown ? [`the engine, ${engine.phase}${reasonOf(engine)}`] : []),
    ...shown.map(
      (task) => `${nameOf(task)}, ${task.phase} ${agoOf(task.since)}${reasonOf(explained(task))}`,
    ),
  ];
  return [`The ${pool} is not ready${why}${which}`, ...details].join('\n  ');
}

/** The cause of a task, or why one without a cause is still starting. */
function explained(task: TaskReadiness): { cause?: string; remedy?: string } {
  return task.phase === 'starting' && task.cause === undefined ? importing : task;
}

function nameOf({ job, task, address, host, pid }: TaskReadiness): string {
  const machine = pid === undefined ? host : `${host}, pid ${pid}`;
  const where = host === undefined ? address : machine;
  return `${job}:${task}${where === undefined ? '' : ` (${where})`}`;
}

function agoOf(since: Date): string {
  const seconds = Math.max(0, (Date.now() - since.getTime()) / 1_000);
  return `for ${seconds.toFixed(1)} s`;
}

function reasonOf({ cause, remedy }: { cause?: string; remedy?: string }): string {
  const why = cause === undefined ? '' : `: ${cause}`;
  return remedy === undefined ? why : `${why}. What to do: ${remedy}`;
}

// What is said of calls that wait while the cluster has no worker: a warning, without which the
// program would hang without a word, and the reason in the errors of calls whose time is over.

const NO_WORKER_MS = 10_000;

/** What is asked of the pool. */
type Asked = {
  readonly coordinator: { readonly name: string };
  readonly engine: { report(): ReadinessReport };
  readonly queue: { readonly queued: number };
  readonly isOver: boolean;
};

/** Warns once for each time without a worker. While there is one, nothing is timed. */
export class NoWorkerWarning {
  readonly #pool: Asked;
  #hasWorker = false;
  #hasWarned = false;
  #timer: Timer | undefined;

  constructor(pool: Asked) {
    this.#pool = pool;
  }

  /** The workers have changed. `isFine`: one is ready, or none is needed any more. */
  look(isFine: boolean): void {
    this.#hasWorker = isFine;
    if (isFine) {
      this.#timer?.clear();
      this.#timer = undefined;
      this.#hasWarned = false;
    } else if (this.#waiting > 0) this.onPut();
  }

  /** A call was queued. */
  onPut(): void {
    if (this.#hasWorker || this.#hasWarned || this.#timer !== undefined) return;
    // The message of a worker that is ready may have come while the program computed: the event
    // loop reads it before the immediate. An idle loop does not wake for one that is unreferenced.
    const late = (): void => void setImmediate(() => this.#warn(timer));
    const timer = new Timer(NO_WORKER_MS, late).unref();
    this.#timer = timer;
  }

  /** Why no worker is ready, as a sentence; '' while one is. */
  why(): string {
    return this.#hasWorker ? '' : whyNone(this.#pool.engine.report());
  }

  /** How many calls are queued; 0 if the cluster runs nothing more. */
  get #waiting(): number {
    return this.#pool.isOver ? 0 : this.#pool.queue.queued;
  }

  #warn(timer: Timer): void {
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    const waiting = this.#waiting;
    if (waiting === 0) return;
    this.#hasWarned = true;
    const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`;
    const text = `${calls}, and no worker of the ${this.#pool.coordinator.name} has been ready for ${NO_WORKER_MS / 1_000} s`;
    const why = whyNone(this.#pool.engine.report());
    process.emitWarning(why === '' ? text : `${text}. ${why}`, {
      type: 'NoWorkerWarning',
      code: 'ALLSTOP_NO_WORKER',
    });
  }
}

/** What `ready()` would say of the engine, or else of the first worker; '' if all are ready. */
function whyNone({ engine, tasks }: ReadinessReport): string {
  if (engine.phase !== 'ready') return `The engine is '${engine.phase}'${reasonOf(engine)}`;
  const blocking = tasks.filter(({ ready }) => !ready);
  const [first] = blocking;
  if (first === undefined) return '';
  const { job, task, phase } = first;
  const more = blocking.length > 1 ? `, like ${blocking.length - 1} more` : '';
  return `${job}:${task} is not ready (${phase})${more}${reasonOf(explained(first))}`;
}

// Functions that are called when the workers' states, the queue or the data sets have changed.

export class ChangeListeners {
  readonly #listeners = new Set<() => void>();

  notify(): void {
    for (const look of this.#listeners) look();
  }

  add(look: () => void): void {
    this.#listeners.add(look);
  }

  delete(look: () => void): void {
    this.#listeners.delete(look);
  }

  /** Resolves when `predicate` returns true. It is called now and after each change. */
  until(predicate: () => boolean): Promise<void> {
    if (predicate()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (!predicate()) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
    });
  }

  /** As `promise`, which may never settle; but undefined if `predicate` is true first. */
  unless<T>(predicate: () => boolean, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      // It goes when the promise settles, not at the next change: none may come after a wrong call.
      const end = (settle: () => void): void => {
        this.#listeners.delete(look);
        settle();
      };
      const look = (): void => {
        if (predicate()) end(() => resolve(undefined));
      };
      this.#listeners.add(look);
      promise.then(
        (value) => end(() => resolve(value)),
        (error: Error) => end(() => reject(error)),
      );
      look();
    });
  }
}
