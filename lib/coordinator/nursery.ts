/** `Coordinator.run`: a scope that does not end before the threads that were started in it. */

import type { Attachment } from './attachment.ts';
import { untilIdle } from './join.ts';
import { tellBusyWorkers, updateBusyWorkers } from './threads/busy-workers.ts';
import { bodyBegins, bodyEnds, exitAsSignalled } from './threads/lost-bodies.ts';

/** What `runIn` needs of the public Coordinator. */
type Scope = { join(options: { ignoreLiveThreads: boolean }): Promise<void> };

/**
 * Calls `body`, then ends the threads of its coordinator.
 *
 * A body that returns: waits until no registered thread is alive, or until a stop is requested;
 * then requests a stop, and joins. A body that throws: requests a stop with that error, and joins.
 *
 * @returns what `body` returned; undefined if it threw the echo of a stop without an error
 * @throws (rejects) the recorded error, else the error that `body` threw, else what `join()` throws
 */
export async function runIn<C extends Scope, T>(
  coord: C,
  attachment: Attachment,
  body: (coord: C) => T | PromiseLike<T>,
): Promise<T | undefined> {
  try {
    return await bodyThenJoin(coord, attachment, body);
  } finally {
    exitAsSignalled(attachment);
  }
}

async function bodyThenJoin<C extends Scope, T>(
  coord: C,
  attachment: Attachment,
  body: (coord: C) => T | PromiseLike<T>,
): Promise<T | undefined> {
  let value: T;
  try {
    value = await untilReturned(coord, attachment, body);
  } catch (error) {
    const outcome = attachment.report(error, { via: 'exception', hasCaller: false });
    const isEcho = outcome === 'echo' && attachment.native.status() === null;
    // A report after a join, and the echo of a stop that was cleared, have not stopped anything.
    attachment.requestPlainStop({ via: 'exception' });
    // Live threads are warned of: the error that is thrown must not hide them.
    await coord.join({ ignoreLiveThreads: !isEcho });
    if (isEcho) return undefined;
    throw error;
  }
  await untilIdle(attachment);
  attachment.requestPlainStop({ via: 'call' });
  await coord.join({ ignoreLiveThreads: false });
  return value;
}

/** Calls `body`. While it runs after a stop, the end of the process by `exitAfterStop` names it. */
async function untilReturned<C, T>(
  coord: C,
  attachment: Attachment,
  body: (coord: C) => T | PromiseLike<T>,
): Promise<T> {
  attachment.bodySince = new Date();
  const unlisten = attachment.listenToStops(() => tellBusyWorkers(attachment));
  bodyBegins(attachment);
  try {
    return await body(coord);
  } finally {
    bodyEnds(attachment);
    unlisten();
    attachment.bodySince = undefined;
    updateBusyWorkers(attachment);
  }
}
