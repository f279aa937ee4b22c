/**
 * Listeners that a worker keeps whatever its functions remove: without them it would hear of no
 * call, answer or cancellation any more, and what it was sent would never end.
 */

import type { MessagePort } from 'node:worker_threads';

type Listener = (...args: never[]) => void;

/** What this file uses of a port and of `process`. Bun's port has no `removeAllListeners`. */
type Target = {
  on(event: string, listener: Listener): unknown;
  listeners?(event: string): unknown[];
  removeAllListeners?(event?: string): unknown;
};

/**
 * Adds `listeners`, and adds them again at once when they are removed. `process` tells of each
 * with 'removeListener', unless all listeners of all events are removed; a port tells of none.
 */
export function addLasting(
  to: MessagePort | NodeJS.Process,
  listeners: Readonly<Record<string, Listener>>,
): void {
  const target = to as unknown as Target;
  const listen = (removed?: string): void => {
    for (const [event, listener] of Object.entries(lasting)) {
      if (removed !== undefined && event !== removed) continue;
      // A port has no `listeners`, and ignores a listener that it has.
      if (!target.listeners?.(event).includes(listener)) target.on(event, listener);
    }
  };
  const lasting = { ...listeners, removeListener: (event: string) => listen(event) };
  listen();
  const { removeAllListeners } = target;
  if (removeAllListeners === undefined) return;
  target.removeAllListeners = (...event) => {
    Reflect.apply(removeAllListeners, target, event);
    listen(...event);
    return target;
  };
}
