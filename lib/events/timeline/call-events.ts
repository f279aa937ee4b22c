/**
 * What a cluster notes of its calls: a ring of typed arrays for each coordinator, in the
 * JavaScript thread that has made the cluster. A call of a trivial function takes microseconds,
 * so an event must take nanoseconds: `note` allocates nothing once the ring has its size, and reads
 * the clock once for all events between two turns of the microtask queue.
 */

import { now, soon } from '../../base/timer.ts';
import { CALL_TYPES, type TimelineEvent } from './events.ts';

const CAPACITY = 4_096;
const NO_WORKER = -1;

/** The indexes of CALL_TYPES, for `note`. */
export const CALL: Readonly<Record<'queued' | 'started' | 'lost' | 'runAgain' | 'ended', number>> =
  { queued: 0, started: 1, lost: 2, runAgain: 3, ended: 4 };

/** `at`: of the clock of lib/base/timer.ts. */
type Recorded = { events: TimelineEvent[]; dropped: number };

export class CallEvents {
  readonly #at = new Float64Array(CAPACITY);
  readonly #types = new Uint8Array(CAPACITY);
  readonly #calls = new Int32Array(CAPACITY);
  readonly #functions: string[] = [];
  /** The index of the worker, of 'started'. */
  readonly #workers = new Int32Array(CAPACITY);
  /** The number of events so far. The event number n is at n % CAPACITY. */
  #count = 0;
  /** The time of all events until the microtask that #forget begins; 0 if it was not read. */
  #now = 0;
  readonly #forget = (): void => {
    this.#now = 0;
  };

  /** `type`: a value of CALL. `worker`: of 'started', if it is known. */
  note(type: number, call: number, name: string, worker: number = NO_WORKER): void {
    if (this.#now === 0) {
      this.#now = now();
      soon(this.#forget);
    }
    const place = this.#count++ % CAPACITY;
    this.#at[place] = this.#now;
    this.#types[place] = type;
    this.#calls[place] = call;
    this.#functions[place] = name;
    this.#workers[place] = worker;
  }

  recorded(): Recorded {
    const dropped = Math.max(0, this.#count - CAPACITY);
    const events: TimelineEvent[] = [];
    for (let each = dropped; each < this.#count; each++) {
      const place = each % CAPACITY;
      const worker = this.#workers[place] ?? NO_WORKER;
      events.push({
        at: this.#at[place] ?? 0,
        type: CALL_TYPES[this.#types[place] ?? 0] ?? 'call-queued',
        call: this.#calls[place] ?? 0,
        function: this.#functions[place] ?? '',
        ...(worker !== NO_WORKER && { worker }),
      });
    }
    return { events, dropped };
  }
}

/** By the attachment of the cluster's coordinator. */
const rings = new WeakMap<object, CallEvents>();

/** The ring of the cluster whose coordinator this is. */
export function beginCallEvents(attachment: object): CallEvents {
  const ring = new CallEvents();
  rings.set(attachment, ring);
  return ring;
}

/** Undefined if this JavaScript thread has no cluster with this coordinator. */
export function callEventsOf(attachment: object): Recorded | undefined {
  return rings.get(attachment)?.recorded();
}
