/** The setup and teardown functions of a worker, as its slot sees them. */

import { fieldOf, messageOf, namedMessageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { duration } from '../../coordinator/words.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { decode } from '../../record/encoded-error.ts';
import type { WorkerName } from './channel.ts';

/** The setup function of `worker` (JOB:INDEX) has failed, or an export does not exist. */
export function setupError(
  { job, index }: WorkerName,
  setup: string | undefined,
  cause: unknown,
): Error {
  const by = setup === undefined ? '' : ` by '${setup}'`;
  const text = `Worker ${job}:${index} could not be set up${by}: ${namedMessageOf(cause)}`;
  return new UnavailableError(text, { cause });
}

/**
 * A worker that runs nothing any more ends: after its teardown function, if it has one, and a process
 * by itself. It has limited time for both. What goes wrong with the function is a warning
 * (`ALLSTOP_TEARDOWN`): no call waits for it, and the worker ends all the same.
 */
export class Ending {
  /** Undefined: nothing that can fail. */
  #what: string | undefined;
  readonly #timer: Timer;

  /**
   * `what` the worker does, for warnings; undefined: it only exits. `onLate` is called when the time
   * is over, unless the worker is gone.
   */
  constructor(what: string | undefined, limitMs: number, onLate: () => void) {
    this.#what = what;
    this.#timer = new Timer(limitMs, () => {
      this.#warn(`did not end within ${duration(limitMs)}: the worker is ended by force`);
      onLate();
    });
  }

  /** The teardown function has ended; `failed`: with this encoded error. */
  tornDown(failed: Uint8Array | undefined): void {
    if (failed !== undefined) {
      const { value } = decode(failed);
      this.#warn(`failed: ${messageOf(value)}`, value);
    }
    this.#what = undefined;
  }

  /** The worker is gone. */
  clear(): void {
    this.#timer.clear();
  }

  #warn(how: string, error?: unknown): void {
    if (this.#what === undefined) return;
    const stack = fieldOf(error, 'stack');
    process.emitWarning(`${this.#what} ${how}`, {
      code: 'ALLSTOP_TEARDOWN',
      ...(typeof stack === 'string' && { detail: stack }),
    });
  }
}
