/**
 * The channels of `node:diagnostics_channel` about coordinators and their threads, and what Node's
 * channels lack: to be told of a new subscriber.
 */

import { type Channel, channel } from 'node:diagnostics_channel';
import { setImmediate } from '../base/timer.ts';
import type { StopRecord } from '../record/stop-record.ts';
import type { CoordinatorMessage, Subscriber, ThreadInfo } from './spine.ts';

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
export const onChannels: Subscriber = {
  hears: isSubscribed,
  hear(event) {
    const { about, type } = event;
    if (type === 'stop-requested') publish(STOP, () => ({ ...about, record: event.record() }));
    else if (type === 'thread-started') {
      publish(THREAD_START, () => ({ ...about, thread: event.thread() }));
    } else if (type === 'ended') publish(THREAD_END, () => ({ ...about, thread: event.thread() }));
    else if (type === 'straggler') {
      publish(STRAGGLER, () => ({
        ...about,
        thread: event.thread(),
        runningForMs: event.stopAgeMs(),
      }));
    }
  },
};

/** From now on calls `then` after each subscription to one of them, and once if there is one. */
export function onSubscribe(then: () => void): void {
  for (const each of CHANNELS) {
    // Another copy of the package in this thread has been here before: it has to hear, too.
    const other = Object.hasOwn(each, 'subscribe') ? each.subscribe : undefined;
    Object.defineProperty(each, 'subscribe', {
      configurable: true,
      writable: true,
      value(this: Channel, listener: (message: unknown, name: string | symbol) => void): void {
        // The prototype changes with the first subscriber: Node's own `subscribe` is looked up now.
        const prototype: Channel = Object.getPrototypeOf(this);
        (other ?? prototype.subscribe).call(this, listener);
        then();
      },
    });
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
