/** A case of `allstop check-addon`: what the parent tells the child process, and what that says. */

/** How far the addon has got in its worker when the worker is ended. */
export const PHASES = ['loaded', 'running', 'done'] as const;

/** How the worker is ended. */
export const ENDINGS = ['terminated', 'exits', 'throws'] as const;

/** How many workers use the addon at the same time. */
export const WORKERS = [1, 2] as const;

export type Case = {
  phase: (typeof PHASES)[number];
  ending: (typeof ENDINGS)[number];
  workers: (typeof WORKERS)[number];
};

export const cases: readonly Case[] = PHASES.flatMap((phase) =>
  ENDINGS.flatMap((ending) => WORKERS.map((workers) => ({ phase, ending, workers }))),
);

/** What the child process, and each of its workers, is given. Paths are absolute. */
export type Order = Case & {
  addon: string;
  script: string;
  /** The file of the worker. */
  worker: string;
  /** For so long after each worker's end the process lets events come. */
  afterMs: number;
};

/** What a worker tells the main thread of the child process. */
export type FromWorker = { reached: true; hasAfterwards: boolean } | Failed;

/** Why the exercise could not be made; `exports` are the names that the addon exports, if known. */
export type Failed = { failed: string; exports?: readonly string[] };

/**
 * What the child process prints, a line each: what it does from now on, why the exercise could not
 * be made, and that all is done.
 */
export type Told = { step: string } | Failed | { done: true };

/** Begins each line of a child process that is meant for the parent. */
export const MARK = 'allstop-check-addon ';

/** The message of the error that ends a worker by an exception. */
export const DELIBERATE = 'allstop check-addon ends this worker by an exception';
