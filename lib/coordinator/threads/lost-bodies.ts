/**
 * Functions given to `Coordinator.run` that can no longer return: the event loop of the process has
 * nothing left to do, so the promise that they await is settled by nobody. The process then ends
 * without a word of its own, with Node's exit code 13 (or 0, if nobody awaits `run`).
 */

import { constants } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { failWith } from '../../base/exit-code.ts';
import { binding } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';
import { PATIENCE_MS } from '../unseen-errors.ts';

/** Those whose function has not returned. */
const running = new Set<Attachment>();

/** Whether the event loop has had nothing to do: not so in `process.exit()`. */
let isIdle = false;

export function bodyBegins(attachment: Attachment): void {
  if (!isMainThread) return; // the end of a worker is not the end of the process
  if (running.size === 0) process.on('beforeExit', onIdle).on('exit', tellOfLostBodies);
  running.add(attachment);
}

export function bodyEnds(attachment: Attachment): void {
  if (!running.delete(attachment) || running.size > 0) return;
  process.off('beforeExit', onIdle).off('exit', tellOfLostBodies);
  isIdle = false;
}

/** Those that were asked to return. Without a stop the end of the process is left to Node. */
const lost = (): Attachment[] => [...running].filter((attachment) => attachment.shouldStop());

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
export function exitAsSignalled(attachment: Attachment): void {
  const requester = attachment.native.record()?.requester;
  if (requester?.via !== 'signal') return;
  const number = constants.signals[requester.signal as NodeJS.Signals];
  if (number !== undefined) failWith(128 + number);
}
