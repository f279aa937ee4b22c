/** What a worker runs, in words. */

import { duration } from '../../coordinator/words.ts';
import type { WorkerInfo } from '../closures/strategy.ts';

/** What the worker runs, and for how long, for `explain()`; '' if it is idle. */
export function activityOf({ tasks, running: sent }: WorkerInfo): string {
  const running = tasks.map(
    ({ name, startedAt }) => `'${name}' for ${duration(Date.now() - startedAt.getTime())}`,
  );
  const more = sent - tasks.length;
  if (running.length === 0) return '';
  return `: runs ${running.join(', ')}${more === 0 ? '' : `, ${more} more sent`}`;
}
