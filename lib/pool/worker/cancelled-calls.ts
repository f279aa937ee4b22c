/**
 * The cancellations that a native thread of a worker process has received (native/binding/
 * fork_line.h): by them a function that computes sees its own before the message about it, which
 * waits for the event loop.
 */

import { binding } from '../../native/native.ts';
import { decode } from '../../record/encoded-error.ts';

export class CancelledCalls {
  /** One word: the native thread stores 1 when it has received a cancellation. */
  readonly words: Int32Array = new Int32Array(new SharedArrayBuffer(4));
  /** By the call's id; oldest first. */
  readonly #reasons = new Map<number, Uint8Array>();
  readonly #most: number;

  /**
   * `concurrency`: how many calls the process has at most. While one of them computes, what
   * arrives after its own cancellation is of the others, and of those that the coordinator has sent
   * for others that had ended: less than twice as many. Older cancellations are of ended calls,
   * or the event loop has received their messages.
   */
  constructor(concurrency: number) {
    this.#most = 2 * concurrency;
  }

  has(id: number): boolean {
    if (Atomics.load(this.words, 0) !== 0) this.#take();
    return this.#reasons.has(id);
  }

  /** @returns undefined if the call is not cancelled */
  reasonOf(id: number): { value: unknown } | undefined {
    const reason = this.has(id) ? this.#reasons.get(id) : undefined;
    return reason && decode(reason);
  }

  /**
   * Called when the call has ended. What the native thread has received is taken all the same:
   * it would stay there if no function ever asked.
   */
  forget(id: number): void {
    if (this.has(id)) this.#reasons.delete(id);
  }

  #take(): void {
    Atomics.store(this.words, 0, 0); // before: what comes from now on sets it again
    for (const { id, reason } of binding().takeCancelledCalls()) this.#reasons.set(id, reason);
    for (const id of this.#reasons.keys()) {
      if (this.#reasons.size <= this.#most) break;
      this.#reasons.delete(id);
    }
  }
}
