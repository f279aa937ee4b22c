/** `resize()` of a cluster. */

import { checkInteger } from '../base/arguments.ts';
import { attachmentOf } from '../coordinator/attachment.ts';
import { FailedPreconditionError } from '../errors/errors.ts';
import type { ClosureRules } from '../pool/queue/closure-rules.ts';
import type { NeverReady } from '../pool/queue/readiness.ts';
import type { Engine } from '../pool/queue/strategy.ts';

const MAX_WORKERS = 1_024;

/** The errors are those of `ClusterCoordinator.resize`. */
export async function resize(
  engine: Engine,
  rules: ClosureRules,
  over: NeverReady | undefined,
  workers: number,
): Promise<void> {
  checkInteger('workers', workers, 1, MAX_WORKERS);
  if (engine.resize === undefined) {
    throw new FailedPreconditionError(
      'Only a cluster with a LocalStrategy can be resized: start or end `allstop worker` processes instead',
    );
  }
  if (over !== undefined) {
    const { why, cause, isStop } = over;
    const error = new FailedPreconditionError(`The cluster cannot be resized: ${why}`, { cause });
    throw isStop === true ? attachmentOf(rules.coordinator).interrupted(error) : error;
  }
  const resized = engine.resize(workers);
  rules.failUnplaceable();
  try {
    await resized;
  } catch (error) {
    rules.failUnplaceable(); // the workers that it had begun are gone
    throw error;
  }
}
