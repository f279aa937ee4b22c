/** Listeners that a server has only as long as the program listens, too. */

import type { Server } from 'node:net';

/**
 * Has each of `listeners` called before those of the program, while the program has one of that
 * event. One of ours alone would change what Node does: without a listener of 'upgrade' it takes
 * such a request for a plain one, and http2 answers by its `stream` alone.
 *
 * @returns what takes all off
 */
export function listenAlongside(
  server: Server,
  listeners: Readonly<Record<string, (...args: never[]) => void>>,
): () => void {
  const own = new Map(Object.entries(listeners) as [string, () => void][]);
  const on = new Set<string>();
  const added = (event: string): void => {
    const listener = own.get(event);
    if (listener === undefined || on.has(event)) return;
    on.add(event); // first: that it is added is an event of its own
    server.prependListener(event, listener);
  };
  const removed = (event: string): void => {
    if (!on.has(event) || server.listenerCount(event) > 1) return;
    on.delete(event);
    server.off(event, own.get(event) as () => void);
  };
  for (const event of own.keys()) if (server.listenerCount(event) > 0) added(event);
  server.on('newListener', added);
  server.on('removeListener', removed);
  return () => {
    server.off('newListener', added);
    server.off('removeListener', removed);
    for (const event of on) server.off(event, own.get(event) as () => void);
  };
}
