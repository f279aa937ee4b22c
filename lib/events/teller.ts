/**
 * What happens to coordinators and their threads, in this JavaScript thread.
 *
 * The core keeps the events in its timeline, and rings the doorbell of the threads that watch them.
 * A thread watches only while somebody hears: Node does not tell of a new subscriber of a channel, so
 * the channels get a `subscribe` of their own that does.
 */

import { onChannels, onSubscribe } from './channels.ts';
import { inLog } from './debug-log.ts';
import { CoordinatorEvent, type CoordinatorMessage, type Watched } from './spine.ts';

const SUBSCRIBERS = [onChannels, inLog];
const isHeard = (): boolean => SUBSCRIBERS.some((each) => each.hears());

const tellers = new WeakMap<Watched, Teller>();

/** Tells of the further events of one coordinator, in their order. */
export class Teller {
  readonly #watched: Watched;
  readonly #about: CoordinatorMessage;
  /** How many events of the timeline were told, or were there before. */
  #read = 0;
  /** 'again': `tell` was called while it ran. */
  #state: 'idle' | 'telling' | 'again' = 'idle';

  private constructor(watched: Watched) {
    this.#watched = watched;
    const { name, id } = watched.native;
    this.#about = { coordinator: name, coordinatorId: id };
  }

  static begin(watched: Watched): void {
    if (tellers.has(watched)) return;
    const teller = new Teller(watched);
    tellers.set(watched, teller);
    teller.#read = watched.setTeller(teller);
  }

  tell(): void {
    if (this.#state !== 'idle') {
      this.#state = 'again'; // a subscriber has called us: the loop below goes on
      return;
    }
    try {
      // What other threads do meanwhile rings the doorbell: read until nothing is new, this might
      // never end, and the caller has a signal to abort.
      do {
        this.#state = 'telling';
        const { events, dropped, startedAt } = this.#watched.native.timeline(this.#read);
        this.#read += dropped + events.length;
        for (const event of events) {
          let told: CoordinatorEvent | undefined;
          for (const subscriber of SUBSCRIBERS) {
            if (!subscriber.hears()) continue;
            told ??= new CoordinatorEvent(this.#about, this.#watched, event, startedAt);
            subscriber.hear(told);
          }
        }
      } while (this.#isCalledAgain());
    } finally {
      this.#state = 'idle';
    }
    if (isHeard()) return;
    tellers.delete(this.#watched);
    this.#watched.setTeller(undefined);
  }

  #isCalledAgain(): boolean {
    return this.#state === 'again';
  }
}

let watchedHere: (() => Iterable<Watched>) | undefined;

/** Called for each new attachment. `all`: gives those of this thread. */
export function watch(watched: Watched, all: () => Iterable<Watched>): void {
  if (watchedHere === undefined) {
    watchedHere = all;
    onSubscribe(() => {
      for (const each of all()) Teller.begin(each);
    });
  }
  if (isHeard()) Teller.begin(watched);
}
