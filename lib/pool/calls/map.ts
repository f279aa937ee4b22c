/** Checks the arguments of `cluster.map`. */

import { invalidType } from '../../base/arguments.ts';
import type { ChangeListeners } from '../queue/change-listeners.ts';
import { checkFunctionOrName } from '../queue/module-exports.ts';
import { checkMapOptions } from './call-options.ts';
import type { Calls } from './calls.ts';
import { isSource } from './item-source.ts';
import { LookAhead } from './look-ahead.ts';
import { Mapped } from './mapped.ts';
import type { MapOptions } from './signatures.ts';

export type MapHost = {
  readonly calls: Calls;
  /** Called when workers, or what they can do, have changed. */
  readonly changes: ChangeListeners;
  /** How many functions the workers run at once, now. */
  capacity(): number;
};

/** @throws TypeError, RangeError */
export function map(
  { calls, changes, capacity }: MapHost,
  fn: unknown,
  items: unknown,
  given: MapOptions | undefined,
): Mapped {
  checkFunctionOrName(fn);
  if (!isSource(items)) {
    const remedy = typeof items === 'string' ? 'write [...text] for its characters' : undefined;
    throw invalidType('items', 'an iterable or an async iterable', items, remedy);
  }
  const { concurrency, ordered, settles, key, ofCalls } = checkMapOptions(given, calls.host);
  const lookAhead = new LookAhead(concurrency, capacity);
  const how = { options: ofCalls, lookAhead, isOrdered: ordered, settles, key };
  return new Mapped({ fn, items, ...how, calls, changes });
}
