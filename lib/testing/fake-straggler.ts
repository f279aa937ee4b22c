/** `fakeStraggler`: a registered thread that does not end. */

import { checkString } from '../base/arguments.ts';
import { checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { Watch } from '../coordinator/threads/watch.ts';

/**
 * Registers a thread that overstays every grace period, so that a test sees what the program does
 * with a `StragglersError`, with `leftBehind` and with the warning `ALLSTOP_STRAGGLERS`. The test
 * needs milliseconds if the grace period is short: `join({ stopGracePeriodMs: 0 })`. The thread is
 * of the kind 'custom', runs nothing, and does not keep the process alive.
 *
 * Any JavaScript thread may call it. A JavaScript thread that ends before it has disposed of its
 * stragglers stops the coordinator with an UnavailableError, as with any thread that it watches.
 *
 * @example
 * ```js
 * import { Coordinator } from 'allstop';
 * import { fakeStraggler } from 'allstop/testing';
 *
 * const coord = new Coordinator();
 * fakeStraggler(coord, 'upload');
 * coord.requestStop();
 * const joined = coord.join({ stopGracePeriodMs: 0 });
 * await joined.catch((error) => console.log(error.name)); // StragglersError
 * ```
 * @param name - the name of the thread (default: 'straggler')
 * @returns disposing of it ends the thread before the call returns; a second time does nothing
 * @throws TypeError (`ERR_INVALID_ARG_TYPE`)
 */
export function fakeStraggler(coord: Coordinator, name: string = 'straggler'): Disposable {
  const attachment = checkCoordinator('coord', coord);
  checkString('name', name);
  const watch = new Watch(attachment, 'custom', name);
  return { [Symbol.dispose]: () => watch.end() };
}
