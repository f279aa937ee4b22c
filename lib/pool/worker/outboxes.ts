/** What a worker has not sent yet: results, of which those of short functions share a message, and progress. */

import { isObject } from '../../base/thrown-value.ts';
import { now } from '../../base/timer.ts';
import { encode } from '../../record/encoded-error.ts';
import { type FromWorker, type SentResult, STATE } from './messages.ts';
import { RecentValues } from './recent-values.ts';
import { type Movable, refusedResult, transferListOf } from './transfer.ts';

// What a function has reported and its worker has not sent: at once, or, when a message was sent a
// moment ago, together with what is reported meanwhile. So a function that reports without end
// floods nobody: of what comes faster than messages go, the oldest is dropped.

const INTERVAL_MS = 10;
const MOST = 4_096;
const MOST_BYTES = 256 * 1024;

export class ProgressOutbox {
  readonly #send: (values: Uint8Array[]) => void;
  readonly #waiting = new RecentValues(MOST, MOST_BYTES);
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (values: Uint8Array[]) => void) {
    this.#send = send;
  }

  add(value: Uint8Array): void {
    this.#waiting.add(value);
    // Tested here too, since the timer of a function that does not yield never fires.
    if (now() - this.#sentAt >= INTERVAL_MS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), INTERVAL_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentAt = now();
    const values = this.#waiting.takeAll();
    if (values.length > 0) this.#send(values);
  }
}

/** The result of a function that ran for less than this waits, to share a message with others. */
export const SHORT_US = 50;

const movedWith = (value: unknown): readonly Movable[] =>
  isObject(value) ? transferListOf([value]) : [];

export class ResultsOutbox {
  readonly #post: (message: FromWorker, transfer?: readonly Movable[]) => void;
  /** A process is sent its next call only when it has sent the result of the last. */
  readonly #areAwaited: boolean;
  #results: SentResult[] = [];
  #transfers: Movable[] = [];

  constructor(
    post: (message: FromWorker, transfer?: readonly Movable[]) => void,
    areAwaited: boolean,
  ) {
    this.#post = post;
    this.#areAwaited = areAwaited;
  }

  get isEmpty(): boolean {
    return this.#results.length === 0;
  }

  /**
   * Sends a result: at once, or with the next results if its function took little time.
   *
   * @param isTheirs - whether the value is an object that the function may return again or change.
   *   It never waits for a second result: in one message the two would be one object of two calls
   */
  add(result: SentResult, isTheirs: boolean): void {
    const [, , value, us] = result;
    this.#results.push(result);
    const moved = movedWith(value);
    if (moved.length > 0) this.#transfers.push(...moved);
    if (isTheirs || this.#areAwaited || us >= SHORT_US) this.flush();
  }

  /** Sends one result, and its id in a message before, for the case that nobody can read it. */
  addAlone(result: SentResult): void {
    this.flush();
    const [id, , , us] = result;
    this.#post({ kind: 'allstop:announcing', id, us });
    this.#postOne(result);
  }

  flush(): void {
    const results = this.#results;
    if (results.length === 0) return;
    const transfers = this.#transfers;
    this.#results = [];
    this.#transfers = [];
    try {
      this.#post({ kind: 'allstop:results', results }, transfers);
    } catch {
      for (const result of results) this.#postOne(result);
    }
  }

  /** If the result cannot be cloned, the function has failed with that error. */
  #postOne(result: SentResult): void {
    const [id, , value, us] = result;
    try {
      this.#post({ kind: 'allstop:results', results: [result] }, movedWith(value));
    } catch (error) {
      const record = encode(refusedResult(error, value, structuredClone)).bytes;
      this.#post({ kind: 'allstop:results', results: [[id, STATE.failed, record, us]] });
    }
  }
}
