/**
 * The channels of `node:diagnostics_channel` about coordinators and their threads, and what Node's
 * channels lack: to be told of a new subscriber.
 */

import { type Channel, channel } from 'node:diagnostics_channel';
import { define } from '../base/thrown-value.ts';
import { setImmediate } from '../base/timer.ts';
import type { StopRecord } from '../record/stop-record.ts';
import {
  CoordinatorEvent,
  type CoordinatorMessage,
  inLog,
  type Subscriber,
  type ThreadInfo,
  type Watched,
} from './spine.ts';

/** On `allstop:stop`: a stop was requested. */
export type StopMessage = CoordinatorMessage & {
  /**
   * Who requested the stop, when and why. Its error does not count as given to the program.
   * Undefined if the stop was cleared before this thread could look.
   */
  record: StopRecord | undefined;
};

/** On `allstop:thread:start` and `allstop:thread:end`. */
export type ThreadMessage = CoordinatorMessage & {
  /** The thread that has started or ended, or is a straggler. */
  thread: ThreadInfo;
};

/** On `allstop:straggler`: a join has found the thread alive after the grace period. */
export type StragglerMessage = ThreadMessage & {
  /** Milliseconds since the stop. */
  runningForMs: number;
};

/** The channel `name`, typed. */
export function channelOf<T>(name: string): Channel<unknown, T> {
  return channel(name) as Channel<unknown, T>;
}

const STOP = channelOf<StopMessage>('allstop:stop');
const THREAD_START = channelOf<ThreadMessage>('allstop:thread:start');
const THREAD_END = channelOf<ThreadMessage>('allstop:thread:end');
const STRAGGLER = channelOf<StragglerMessage>('allstop:straggler');
const CHANNELS: readonly Channel<any, any>[] = [STOP, THREAD_START, THREAD_END, STRAGGLER];

const isSubscribed = (): boolean => CHANNELS.some(({ hasSubscribers }) => hasSubscribers);

/** Publishes the events of coordinators. */
const onChannels: Subscriber = {
  hears: isSubscribed,
  hear(event) {
    const { about, type } = event;
    const ofThread = (): ThreadMessage => ({ ...about, thread: event.thread() });
    if (type === 'stop-requested') publish(STOP, () => ({ ...about, record: event.record() }));
    else if (type === 'thread-started') publish(THREAD_START, ofThread);
    else if (type === 'ended') publish(THREAD_END, ofThread);
    else if (type === 'straggler') {
      publish(STRAGGLER, () => ({ ...ofThread(), runningForMs: event.stopAgeMs() }));
    }
  },
};

/** From now on calls `then` after each subscription to one of them, and once if there is one. */
function onSubscribe(then: () => void): void {
  for (const each of CHANNELS) {
    // Another copy of the package in this thread has been here before: it has to hear, too.
    const other = Object.hasOwn(each, 'subscribe') ? each.subscribe : undefined;
    function subscribe(this: Channel, listener: Parameters<Channel['subscribe']>[0]): void {
      // The prototype changes with the first subscriber: Node's own `subscribe` is looked up now.
      const prototype: Channel = Object.getPrototypeOf(this);
      (other ?? prototype.subscribe).call(this, listener);
      then();
    }
    define(each, 'subscribe', subscribe, false);
  }
  if (isSubscribed()) then();
}

/** Publishes a message, which is made only if something subscribes. Never throws. */
export function publish<T>(to: Channel<unknown, T>, message: () => T): void {
  if (!to.hasSubscribers) return;
  try {
    to.publish(message());
  } catch (error) {
    // Node throws what a subscriber throws as an uncaught exception, later: so for other runtimes.
    setImmediate(() => {
      throw error;
    });
  }
}

// What happens to coordinators and their threads, in this JavaScript thread.
//
// The core keeps the events in its timeline, and rings the doorbell of the threads that watch them.
// A thread watches only while somebody hears: Node does not tell of a new subscriber of a channel, so
// the channels get a `subscribe` of their own that does.

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
