/** What Node's diagnostics channels lack: to be told of a new subscriber. */

import type { Channel } from 'node:diagnostics_channel';

/** From now on calls `then` after each subscription to one of `channels`, and once if there is one. */
export function onSubscribe(channels: readonly Channel<any, any>[], then: () => void): void {
  for (const channel of channels) {
    // Another copy of the package in this thread has been here before: it has to hear, too.
    const other = Object.hasOwn(channel, 'subscribe') ? channel.subscribe : undefined;
    Object.defineProperty(channel, 'subscribe', {
      configurable: true,
      writable: true,
      value(this: Channel, listener: (message: unknown, name: string | symbol) => void): void {
        // The prototype changes with the first subscriber: Node's own `subscribe` is looked up now.
        (other ?? (Object.getPrototypeOf(this) as Channel).subscribe).call(this, listener);
        then();
      },
    });
  }
  if (channels.some(({ hasSubscribers }) => hasSubscribers)) then();
}

/** Publishes a message, which is made only if something subscribes. Never throws. */
export function publish<T>(channel: Channel<unknown, T>, message: () => T): void {
  if (!channel.hasSubscribers) return;
  try {
    channel.publish(message());
  } catch (error) {
    // Node throws what a subscriber throws as an uncaught exception, later: so for other runtimes.
    setImmediate(() => {
      throw error;
    });
  }
}
