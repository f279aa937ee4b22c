/**
 * How a worker dies on the order of `allstop/testing` in the middle of a function: when the function
 * has returned a promise, or before its result is sent.
 */

import { isMainThread } from 'node:worker_threads';
import { turn } from '../../base/turn.ts';

/** The ways to die. 'terminate': by force from outside, while the function runs. */
export const HOW_TO_DIE = ['terminate', 'exit', 'throw', 'outOfMemory'] as const;
export type HowToDie = (typeof HOW_TO_DIE)[number];

const EXIT_CODE = 1;

/** Ends this worker, in this call or, if it throws, in the next turn of the event loop. */
function die(how: Exclude<HowToDie, 'terminate'>): void {
  if (how === 'exit') process.exit(EXIT_CODE);
  // A process that runs out of memory aborts; a thread is ended by Node with this error.
  if (how === 'outOfMemory' && isMainThread) process.abort();
  const error =
    how === 'throw'
      ? new Error(
          "killWorker() has thrown this error in the worker, as the test has asked with 'throw'",
        )
      : Object.assign(
          new Error('Worker terminated due to reaching memory limit: JS heap out of memory'),
          { code: 'ERR_WORKER_OUT_OF_MEMORY' },
        );
  setImmediate(() => {
    throw error;
  });
}

type Doom = { readonly how: HowToDie; readonly spared: Promise<void>; readonly spare: () => void };

/** The closures of one worker in whose middle it has to die. */
export class Dooms {
  readonly #byId = new Map<number, Doom>();
  readonly #onBegun: (id: number) => void;

  /** @param onBegun - asks the other end to end this worker by force */
  constructor(onBegun: (id: number) => void) {
    this.#onBegun = onBegun;
  }

  /** @param runsNow - whether this closure is running, and has returned to the event loop */
  order(id: number, how: HowToDie | undefined, runsNow: boolean): void {
    if (how === undefined) {
      this.#byId.get(id)?.spare();
      this.#byId.delete(id);
      return;
    }
    let spare = (): void => {};
    const spared = new Promise<void>((resolve) => {
      spare = resolve;
    });
    this.#byId.set(id, { how, spared, spare });
    if (!runsNow) return;
    this.begin(id);
    if (how !== 'terminate') die(how);
  }

  /** Call it before the function begins. */
  begin(id: number): void {
    if (this.#byId.get(id)?.how === 'terminate') this.#onBegun(id);
  }

  /**
   * Call it in the middle of the function. Undefined if the worker lives on; else a promise that
   * resolves only if the order is withdrawn, or if the program has caught the error.
   */
  meet(id: number): Promise<void> | undefined {
    const doom = this.#byId.get(id);
    if (doom === undefined) return undefined;
    if (doom.how === 'terminate') return doom.spared;
    this.#byId.delete(id);
    die(doom.how);
    return turn().then(turn);
  }
}
