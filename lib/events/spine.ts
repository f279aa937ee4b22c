/**
 * The spine of events: what happens is told here once, and whoever wants to know subscribes (the
 * diagnostics channels, the log of NODE_DEBUG, the listeners of a cluster). An event is made only
 * if somebody hears it.
 */

import { debuglog } from 'node:util';

/** The log of `NODE_DEBUG=allstop`. */
export const log: ReturnType<typeof debuglog> = debuglog('allstop');

export type Subscriber<E> = {
  /** Whether it has a use for events now: a channel without subscribers of its own has none. */
  hears(): boolean;
  hear(event: E): void;
};

export class Spine<E> {
  readonly #subscribers: readonly Subscriber<E>[];

  constructor(...subscribers: Subscriber<E>[]) {
    this.#subscribers = subscribers;
  }

  get isHeard(): boolean {
    return this.#subscribers.some((each) => each.hears());
  }

  /** `make` is called at most once. */
  tell(make: () => E): void {
    let made: { event: E } | undefined;
    for (const each of this.#subscribers) {
      if (!each.hears()) continue;
      made ??= { event: make() };
      each.hear(made.event);
    }
  }
}
