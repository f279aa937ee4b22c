/** Runs in the Worker of a LooperThread whose target is given by URL. */

import { defaultOf, ownCoordinator } from '../coordinator/threads/worker-module.ts';
import { hold, release } from '../native/doorbell.ts';
import { type LooperTimes, loop } from './looper-loop.ts';

/** The `workerData` of the Worker. */
export type LooperWork = {
  kind: 'looper';
  module: string;
  /** The name of the LooperThread. */
  name: string;
  args: unknown[];
  times: LooperTimes;
  /** The generation of the coordinator at the start: a later one means that a stop has happened. */
  since: number;
};

export async function runLooper({ module, name, args, times, since }: LooperWork): Promise<void> {
  // First: as of here an uncaught error of this Worker reaches the coordinator with all its fields.
  const { attachment } = ownCoordinator();
  const target = await defaultOf(module, `the LooperThread '${name}'`);
  hold(); // a run may await something that does not keep the event loop alive
  await loop(attachment, since, times, () => target(...args));
  release();
}
