/** The threads that are still alive after the grace period of a join, or for long during it. */

import { Timer } from '../../base/timer.ts';
import type { Straggler } from '../../errors/errors.ts';
import { latenciesOf, timeline } from '../../events/timeline.ts';
import type { NativeThread } from '../../native/binding.ts';
import type { Attachment } from '../attachment.ts';
import { waitState } from '../diagnosis/wait-state.ts';
import { printable, warn } from '../words.ts';
import { toThreadInfo } from './watch.ts';

export function toStraggler(native: NativeThread, stopAgeMs: number): Straggler {
  const { name, kind, threadId } = toThreadInfo(native);
  const straggler: Straggler = { name, kind, runningForMs: Math.round(stopAgeMs) };
  if (threadId !== undefined) straggler.threadId = threadId;
  const state = native.isOsThread && threadId !== undefined ? waitState(threadId) : undefined;
  if (state !== undefined) straggler.waitState = state;
  return straggler;
}

/** The threads that joins have left behind, in any JavaScript thread, and that have not ended. */
export function leftBehind(attachment: Attachment): Straggler[] {
  return attachment.native
    .leftBehindThreads()
    .map((thread) => toStraggler(thread, thread.stopAgeMs));
}

/** What TensorFlow logs, or throws, when a join ends before the threads do. */
export function stragglersMessage(stragglers: readonly NativeThread[]): string {
  const names = stragglers.map(({ name }) => printable(name)).join(' ');
  return `Coordinator stopped with threads still running: ${names}`;
}

/** For a join that leaves threads behind, and does not throw an error that names them. */
export function warnOfStragglers(
  attachment: Attachment,
  stragglers: readonly NativeThread[],
): void {
  warn(
    'StragglersWarning',
    'ALLSTOP_STRAGGLERS',
    stragglersMessage(stragglers),
    `leftBehind and explain() of the coordinator '${attachment.native.name}' list them until they end.`,
  );
}

const MOST_NAMES = 8;

/** After this time within its grace period, a join says for whom it waits. */
const STILL_WAITING_MS = 10_000;

/**
 * Warns of a join whose threads have not ended long after the stop, once for each stop: a program
 * that was asked to stop would seem to hang. The event loop is not kept alive for that.
 */
export class StillWaitingWarning {
  readonly #attachment: Attachment;
  /** The generation of the stop for which `#timer` runs, or has run. */
  #stop: number | undefined;
  #timer: Timer | undefined;

  constructor(attachment: Attachment) {
    this.#attachment = attachment;
  }

  /** The join waits though the coordinator is stopped. */
  begin(): void {
    const stop = this.#attachment.native.generation();
    if (stop === this.#stop) return;
    this.#stop = stop;
    this.end();
    this.#timer = new Timer(STILL_WAITING_MS, () => this.#warn()).unref();
  }

  /** The join is over. */
  end(): void {
    this.#timer?.clear();
  }

  #warn(): void {
    const { native } = this.#attachment;
    const alive = native.threads().filter((thread) => thread.alive);
    // A join is not told that a stop was cleared, nor at once that its last thread has ended.
    if (alive.length === 0 || !this.#attachment.shouldStop()) return;
    const names = alive.slice(0, MOST_NAMES).map(({ name }) => `'${name}'`);
    const more = alive.length > MOST_NAMES ? ` and ${alive.length - MOST_NAMES} more` : '';
    const isWorker = alive.some((thread) => toThreadInfo(thread).kind === 'worker');
    const remedy = isWorker
      ? ' A worker that listens for messages ends when it has called parentPort.close().'
      : '';
    warn(
      'StillWaitingWarning',
      'ALLSTOP_STILL_WAITING',
      `The join() of the stopped coordinator '${native.name}' has waited ${STILL_WAITING_MS / 1_000} s for ${names.join(', ')}${more}`,
      `explain() and diagnose() say what they do.${remedy}`,
    );
  }
}

/** `join({ warnSeenAfterMs })`: warns of the threads that took longer than `limitMs` from the newest stop until they saw it. */
export function warnOfSlowThreads(attachment: Attachment, limitMs: number): void {
  const slow = latenciesOf(timeline(attachment).events).flatMap(({ thread, seenMs }) =>
    seenMs !== undefined && seenMs > limitMs ? `${thread} (${seenMs.toFixed(0)} ms)` : [],
  );
  if (slow.length === 0) return;
  warn(
    'SlowStopWarning',
    'ALLSTOP_SLOW_STOP',
    `Threads of the coordinator '${attachment.native.name}' saw the stop later than after ${limitMs} ms: ${slow.join(', ')}`,
    'Have them call shouldStop() more often.',
  );
}
