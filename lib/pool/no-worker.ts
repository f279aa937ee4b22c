/**
 * What is said of calls that wait while the cluster has no worker: a warning, without which the
 * program would hang without a word, and the reason in the errors of calls whose time is over.
 */

import { Timer } from '../base/timer.ts';
import { importing, type ReadinessReport } from '../errors/phases.ts';

const NO_WORKER_MS = 10_000;

export type NoWorkerOptions = {
  /** 'pool' or 'cluster'. */
  poolName: string;
  report: () => ReadinessReport;
  /** How many calls are queued; 0 if the cluster runs nothing more. */
  waiting: () => number;
};

/** Warns once for each time without a worker. While there is one, nothing is timed. */
export class NoWorkerWarning {
  readonly #options: NoWorkerOptions;
  #hasWorker = false;
  #hasWarned = false;
  #timer: Timer | undefined;

  constructor(options: NoWorkerOptions) {
    this.#options = options;
  }

  /** The workers have changed. `isFine`: one is ready, or none is needed any more. */
  look(isFine: boolean): void {
    this.#hasWorker = isFine;
    if (isFine) {
      this.#timer?.clear();
      this.#timer = undefined;
      this.#hasWarned = false;
    } else if (this.#options.waiting() > 0) this.onPut();
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
    return this.#hasWorker ? '' : reasonOf(this.#options.report());
  }

  #warn(timer: Timer): void {
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    const waiting = this.#options.waiting();
    if (waiting === 0) return;
    this.#hasWarned = true;
    const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`;
    const text = `${calls}, and no worker of the ${this.#options.poolName} has been ready for ${NO_WORKER_MS / 1_000} s`;
    const why = reasonOf(this.#options.report());
    process.emitWarning(why === '' ? text : `${text}. ${why}`, {
      type: 'NoWorkerWarning',
      code: 'ALLSTOP_NO_WORKER',
    });
  }
}

/** What `ready()` would say of the engine, or else of the first worker; '' if all are ready. */
function reasonOf({ engine, tasks }: ReadinessReport): string {
  if (engine.phase !== 'ready') return textOf(`The engine is '${engine.phase}'`, engine);
  const blocking = tasks.filter(({ ready }) => !ready);
  const [first] = blocking;
  if (first === undefined) return '';
  const { job, task, phase, cause } = first;
  const more = blocking.length > 1 ? `, like ${blocking.length - 1} more` : '';
  const what = `${job}:${task} is not ready (${phase})${more}`;
  if (phase === 'starting' && cause === undefined) return textOf(what, importing);
  return textOf(what, first);
}

function textOf(what: string, { cause, remedy }: { cause?: string; remedy?: string }): string {
  const why = cause === undefined ? '' : `: ${cause}`;
  return `${what}${why}${remedy === undefined ? '' : `. What to do: ${remedy}`}`;
}
