/** What the Worker of a looper with a URL target does. */

import { defaultOf, ownCoordinator } from '../coordinator/worker-module.ts';
import { hold, release } from '../native/doorbell.ts';
import { type LooperTimes, loop } from './looper-loop.ts';

/** Its `workerData`. */
export type LooperWork = {
  kind: 'looper';
  module: string;
  args: unknown[];
  times: LooperTimes;
  /** The generation as of which a stop concerns the looper. */
  since: number;
};

export async function runLooper({ module, args, times, since }: LooperWork): Promise<void> {
  // Before anything can fail: from here on an uncaught error is encoded.
  const { attachment } = ownCoordinator();
  const target = await defaultOf(module, 'a looper');
  hold(); // a run may wait for what does not keep this thread alive by itself
  await loop(attachment, since, times, () => target(...args));
  release();
}
