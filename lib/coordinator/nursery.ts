/** `Coordinator.run`: a scope that does not end before the threads that were started in it. */

import { builtin, workerThreads } from '../base/builtins.ts';
import { turn } from '../base/timer.ts';
import { binding } from '../native/native.ts';
import type { StopRecord } from '../record/stop-record.ts';
import type { Attachment } from './attachment.ts';
import { callDeferred } from './hooks.ts';
import { joinLast, refuseSelfJoin, untilIdle } from './join.ts';
import { stopsOnUncaught } from './links.ts';
import { report, requestPlainStop } from './requests.ts';
import { signalOfStop } from './signal-links.ts';
import { bodies, tellBusyWorkers, updateBusyWorkers } from './threads/busy-workers.ts';
import { failWith, PATIENCE_MS } from './unseen-errors.ts';

/** The first line of the stack of the stop that `run` requests itself: `via` is 'call' (StopRequester). */
const END_OF_RUN =
  '    at the end of Coordinator.run: its function had returned, and it had no thread to wait for';

/** Whether `run` has requested the stop itself, since its body had returned. */
export const isEndOfRun = (record: StopRecord | undefined): boolean =>
  record?.requester.stack?.startsWith(END_OF_RUN) === true;

/**
 * Calls `body`, then ends the threads of its coordinator.
 *
 * A body that returns: waits until no registered thread is alive, or until a stop is requested;
 * then requests a stop, and joins. A body that throws: requests a stop with that error, and joins.
 *
 * @param site - where `run` was called
 * @returns what `body` returned; undefined if it threw the echo of a stop without an error
 * @throws (rejects) the first error: of the stop, else one that was reported after it, else the
 *   one that `body` threw, else what `join()` throws
 */
export async function runIn<T>(
  attachment: Attachment,
  body: () => T | PromiseLike<T>,
  site: string,
): Promise<T | undefined> {
  const { value, failure } = await bodyEnded(attachment, body, site);
  await endScope(attachment, failure);
  // Not if it failed: for a supervisor a signal's exit code is that of a good end.
  exitAsSignalled(attachment);
  return value;
}

type Failure = { error: unknown };

/**
 * The end of `run`, and disposal, after the stop: joins, then calls what was deferred, though an
 * error is on its way. `failure`: the error of the body.
 *
 * @throws (rejects) the first error; SelfJoinError: called by a thread, which lives on
 */
export async function endScope(attachment: Attachment, failure?: Failure): Promise<void> {
  refuseSelfJoin(attachment);
  let thrown = failure;
  // Given to the program when it is thrown, and no sooner: a deferred function may end the process.
  let first: Uint8Array | null = null;
  try {
    // Live threads are warned of: the error that is thrown must not hide them.
    first = await joinLast(attachment, failure !== undefined);
  } catch (error) {
    thrown = { error };
  }
  await callDeferred(attachment, first !== null || thrown !== undefined);
  if (stopsOnUncaught(attachment)) await turn(); // rejections that nothing has caught come late
  if (thrown === undefined) first ??= attachment.native.firstError();
  if (first !== null) throw attachment.errors.give(first);
  if (thrown !== undefined) throw thrown.error;
}

/** Calls `body`, and requests the stop when it has ended. */
async function bodyEnded<T>(
  attachment: Attachment,
  body: () => T | PromiseLike<T>,
  site: string,
): Promise<{ value?: T; failure?: Failure }> {
  let value: T;
  try {
    value = await untilReturned(attachment, body);
  } catch (error) {
    // After a join without a stop no other error can win: `run` rejects with this one.
    const isThrown = attachment.shouldStop() || !attachment.native.joined();
    const from = { via: 'exception', hasCaller: false, isThrown } as const;
    const outcome = report(attachment, error, from);
    const isEcho = outcome === 'echo' && attachment.native.status() === null;
    // A report after a join, and the echo of a stop that was cleared, have not stopped anything.
    requestPlainStop(attachment, { via: 'exception' });
    return isEcho ? {} : { failure: { error } };
  }
  await untilIdle(attachment);
  requestPlainStop(attachment, { via: 'call', stack: () => `${END_OF_RUN}\n${site}` });
  return { value };
}

/** Calls `body`. While it runs after a stop, the end of the process by `exitAfterStop` names it. */
async function untilReturned<T>(
  attachment: Attachment,
  body: () => T | PromiseLike<T>,
): Promise<T> {
  const unlisten = attachment.listen('stop', () => tellBusyWorkers(attachment));
  if (bodies.size === 0 && workerThreads().isMainThread) {
    process.on('beforeExit', onIdle).on('exit', tellOfLostBodies);
  }
  bodies.set(attachment, new Date());
  try {
    return await body();
  } finally {
    unlisten();
    bodies.delete(attachment);
    if (bodies.size === 0) {
      process.off('beforeExit', onIdle).off('exit', tellOfLostBodies);
      isIdle = false;
    }
    updateBusyWorkers(attachment);
  }
}

// ------------------------------------------------------------ bodies that can no longer return
//
// The event loop has nothing left to do, so nobody settles the promise that the body awaits. The
// process then ends without a word of its own, with Node's exit code 13 (or 0, if nobody awaits `run`).
// (The end of a worker is not the end of the process.)

/** Whether the event loop has had nothing to do: not so in `process.exit()`. */
let isIdle = false;

/** Those that were asked to return. Without a stop the end of the process is left to Node. */
const lost = (): Attachment[] => [...bodies.keys()].filter((attachment) => attachment.shouldStop());

/** Another listener of 'beforeExit' may go on, so that nothing is said yet. */
function onIdle(): void {
  isIdle = true;
  for (const attachment of lost()) exitAsSignalled(attachment); // before Node sets 13
}

function tellOfLostBodies(): void {
  const names = lost().map((attachment) => `'${attachment.native.name}'`);
  if (!isIdle || names.length === 0) return;
  const text =
    'allstop: the function that was given to Coordinator.run has not returned after the stop of ' +
    `the coordinator ${names.toReversed().join(', ')}: nothing was left that could settle the ` +
    'promise that it awaits. Await coord.waitForStop(), or pass coord.signal to what it awaits\n';
  binding().writeToStandardError(text, PATIENCE_MS);
}

/** A program that a signal ended must not look like one that was done. */
function exitAsSignalled(attachment: Attachment): void {
  const signal = signalOfStop(attachment);
  const number: number | undefined = signal && builtin('node:os').constants.signals[signal];
  if (number !== undefined) failWith(128 + number); // else of another platform
}
