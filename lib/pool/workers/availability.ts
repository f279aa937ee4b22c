/**
 * Whether calls may wait for a worker of this machine. They may while one is ready, and for a while
 * after a start has failed: starting goes on, and a shortage may pass.
 */

import { codeOf, fieldOf, messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { duration } from '../../coordinator/words.ts';
import { UnavailableError } from '../../errors/errors.ts';

/** 'failing' since the first start that has failed while no worker was ready. */
type State =
  | { readonly kind: 'available' }
  | { readonly kind: 'failing'; readonly cause: Error; readonly timer: Timer }
  | { readonly kind: 'unavailable'; readonly error: UnavailableError };

/** Of a system that has no more threads, processes, memory or descriptors now. */
const SHORTAGES = new Set<unknown>([
  'ERR_WORKER_INIT_FAILED',
  'ERR_WORKER_OUT_OF_MEMORY',
  'EAGAIN',
  'ENOMEM',
  'EMFILE',
  'ENFILE',
]);

export function isShortage(error: unknown): boolean {
  const cause = fieldOf(error, 'cause');
  return SHORTAGES.has(codeOf(error)) || (cause !== undefined && isShortage(cause));
}

export class Availability {
  readonly #afterMs: number;
  readonly #onUnavailable: () => void;
  #state: State = { kind: 'available' };

  constructor(afterMs: number, onUnavailable: () => void) {
    this.#afterMs = afterMs;
    this.#onUnavailable = onUnavailable;
  }

  /** With what calls are rejected now. */
  get error(): UnavailableError | undefined {
    return this.#state.kind === 'unavailable' ? this.#state.error : undefined;
  }

  workerIsReady(): void {
    this.close();
    this.#state = { kind: 'available' };
  }

  /** A worker could not be started, and none is ready. */
  startHasFailed(cause: Error): void {
    const state = this.#state;
    if (state.kind === 'unavailable')
      this.#state = { kind: 'unavailable', error: this.#because(cause) };
    else if (state.kind === 'failing') this.#state = { ...state, cause };
    else {
      const timer = new Timer(this.#afterMs, () => this.#isOver()).unref();
      this.#state = { kind: 'failing', cause, timer };
    }
  }

  /** Nothing is started any more. */
  close(): void {
    if (this.#state.kind === 'failing') this.#state.timer.clear();
  }

  #isOver(): void {
    if (this.#state.kind !== 'failing') return;
    this.#state = { kind: 'unavailable', error: this.#because(this.#state.cause) };
    this.#onUnavailable();
  }

  #because(cause: Error): UnavailableError {
    const text = `No worker has been ready for ${duration(this.#afterMs)}. Last: ${messageOf(cause)}`;
    return new UnavailableError(text, { cause });
  }
}
