/** What the Worker of a looper with a URL target executes. */

import { workerData } from 'node:worker_threads';
import { Attachment, hold, release } from './attachment.ts';
import { Coordinator } from './coordinator.ts';
import { loop } from './looper-loop.ts';
import type { LooperTimes } from './looper-schedule.ts';

/** Its `workerData`. */
export type LooperWork = {
  module: string;
  args: unknown[];
  times: LooperTimes;
  /** The generation as of which a stop concerns the looper. */
  since: number;
};

const { module, args, times, since } = workerData as LooperWork;
// Before anything can fail: from here on an uncaught error is encoded.
const coord = Coordinator.current();
const attachment = coord && Attachment.behind(coord);
if (attachment === undefined) throw new Error('This module is for the workers of loopers');

const { default: target } = (await import(module)) as { default?: unknown };
if (typeof target !== 'function') {
  throw new TypeError(`The module ${module} of a looper has no function as its default export`);
}
hold(); // a run may wait for what does not keep this thread alive by itself
await loop(attachment, since, times, () => target(...args));
release();
