/** RemoteValues as arguments: the call waits for them outside the line. */

import type { Call } from '../../pool/queue/call.ts';
import type { Outcome } from '../../pool/queue/life.ts';
import { RemoteValue } from './remote-value.ts';

/** Whether RemoteValues are among the arguments. */
export const isHeldBy = (args: unknown): args is readonly unknown[] =>
  Array.isArray(args) && args.some((value) => value instanceof RemoteValue);

export interface ArgumentsListener {
  /** `values`: the arguments, with the results in place of the RemoteValues. */
  onThere(values: unknown[]): void;
  /** The first of them that has failed, or was cancelled. */
  onFailed(outcome: Outcome): void;
}

/**
 * Calls one method of the listener, in the moment in which the last RemoteValue is there or one has
 * failed: before the queue hears of that failure, which would cancel the call for it. Calls none
 * if the call, which is held, is settled first.
 */
export function whenThere(args: readonly unknown[], call: Call, listener: ArgumentsListener): void {
  const values = [...args];
  const leaves: (() => void)[] = [];
  let missing = args.filter((value) => value instanceof RemoteValue).length;
  const leave = (): void => {
    missing = -1;
    for (const each of leaves) each();
  };
  call.atEnd(leave);
  for (const [index, value] of args.entries()) {
    if (missing < 0) return;
    if (!(value instanceof RemoteValue)) continue;
    const onSettled = (state: Outcome['state'], result: unknown): void => {
      if (missing < 0) return;
      values[index] = result;
      missing -= 1;
      if (state !== 'ready') {
        leave();
        listener.onFailed({ state, value: result });
      } else if (missing === 0) {
        leave();
        listener.onThere(values);
      }
    };
    leaves.push(RemoteValue.onSettled(value, onSettled));
  }
}
