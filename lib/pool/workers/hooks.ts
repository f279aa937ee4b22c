/** The setup and teardown functions of a worker, as its slot sees them. */

import { messageOf } from '../../base/thrown-value.ts';
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
  const text = `Worker ${job}:${index} could not be set up${by}: ${messageOf(cause)}`;
  return new UnavailableError(text, { cause });
}

/**
 * A worker that runs nothing any more calls its teardown function, and has limited time for it.
 * What goes wrong is a warning (`ALLSTOP_TEARDOWN`): no call waits for a teardown, and the worker
 * ends all the same.
 */
export class Teardown {
  readonly #what: string;
  readonly #timer: Timer;
  readonly #end: () => void;

  /** `worker`: JOB:INDEX. `end` is called once, when the function has ended or the time is over. */
  constructor(worker: string, name: string | undefined, limitMs: number, end: () => void) {
    const what =
      name === undefined ? 'return() of the iterators' : `The teardown function '${name}'`;
    this.#what = `${what} of ${worker}`;
    this.#end = end;
    this.#timer = new Timer(limitMs, () => {
      this.#warn(`did not end within ${duration(limitMs)}: the worker is ended by force`);
      this.#end();
    });
  }

  /** The worker has told that the function has ended; `failed`: with this encoded error. */
  ended(failed: Uint8Array | null): void {
    this.#timer.clear();
    if (failed !== null) {
      const { value } = decode(failed);
      this.#warn(`failed: ${messageOf(value)}`, value);
    }
    this.#end();
  }

  /** The worker is gone. */
  clear(): void {
    this.#timer.clear();
  }

  #warn(how: string, error?: unknown): void {
    const { stack } = (error ?? {}) as { stack?: unknown };
    process.emitWarning(`${this.#what} ${how}`, {
      code: 'ALLSTOP_TEARDOWN',
      ...(typeof stack === 'string' && { detail: stack }),
    });
  }
}
