/** Waits for the end of registered threads: the joins of this JavaScript thread. */

import {
  addAbortListener,
  reasonOfAbort,
  removeAbortListener,
  throwIfAborted,
} from '../base/abort.ts';
import { checkOptions, holds, invalidType, isIterable } from '../base/arguments.ts';
import { clearImmediate, setImmediate, Timer, turn } from '../base/timer.ts';
import { SelfJoinError, StragglersError } from '../errors/errors.ts';
import { logNativeStop } from '../events/spine.ts';
import { latenciesOf, timeline } from '../events/timeline.ts';
import { type NativeJoinResult, type NativeThread, THREAD_KINDS } from '../native/binding.ts';
import { binding, hold, release } from '../native/native.ts';
import type { Attachment } from './attachment.ts';
import { JOIN_OPTIONS, type JoinOptions } from './coordinator-options.ts';
import { Places, STACKS_TIMEOUT_MS } from './diagnosis/places.ts';
import { NOT_BEGUN, toStraggler } from './explain.ts';
import { awaiting, enclosingTasks } from './threads/task-context.ts';
import { checkThread, isThread, type JoinableThread, register } from './threads/watch.ts';
import { printable, warn } from './words.ts';

function selfJoin(attachment: Attachment): SelfJoinError {
  return new SelfJoinError(
    `A thread or task of the coordinator '${attachment.native.name}' called its join(), which would ` +
      'wait for the caller. Call join() elsewhere, or use waitForStop()',
  );
}

/** `Coordinator.join`, which documents it. */
export async function join(
  attachment: Attachment,
  first?: Iterable<JoinableThread> | JoinOptions,
  second?: JoinOptions,
): Promise<void> {
  const passed = isIterable(first);
  const meant = second !== undefined || typeof first === 'string' || isThread(first);
  if (!passed && first !== undefined && (meant || holds(() => Symbol.iterator in first))) {
    throw invalidType('threads', 'an iterable of threads', first);
  }
  const given = passed ? second : (second ?? (first as JoinOptions));
  const options = checkOptions('options', given, JOIN_OPTIONS);
  const threads = passed ? [...first] : [];
  for (const thread of threads) checkThread(attachment, 'threads[]', thread);
  throwIfAborted(options.signal);
  refuseSelfJoin(attachment); // first: a refused call must register no thread
  for (const thread of threads) register(attachment, thread);
  const error = await joinRegistered(attachment, options, false);
  if (error !== null) throw attachment.errors.give(error);
}

/** @throws SelfJoinError: a join that the caller called now would wait for the caller */
export function refuseSelfJoin(attachment: Attachment): void {
  if (attachment.native.wouldJoinItself(enclosingTasks(attachment))) throw selfJoin(attachment);
}

/** The join with which `run` and disposal end. @returns the error that they throw, encoded */
export const joinLast = (
  attachment: Attachment,
  ignoreLiveThreads: boolean,
): Promise<Uint8Array | null> => joinRegistered(attachment, { ignoreLiveThreads }, true);

/**
 * `isLast`: without an error of the stop, the first later one counts.
 *
 * @returns the error that the caller throws, encoded: it is then that the program is given it
 * @throws (rejects) StragglersError
 */
async function joinRegistered(
  attachment: Attachment,
  options: JoinOptions,
  isLast: boolean,
): Promise<Uint8Array | null> {
  const { stopGracePeriodMs = attachment.native.stopGracePeriodMs, signal } = options;
  const { ignoreLiveThreads, stacks, warnSeenAfterMs } = options;
  const what = (): string => {
    const alive = attachment.native.threads().filter((thread) => thread.alive);
    const names = alive.map(({ name }) => name).join(', ');
    return `a join() of the coordinator '${attachment.native.name}', which waits for: ${names}`;
  };
  const result = await awaiting(what, threadsEnd(attachment, stopGracePeriodMs, signal));
  const { stop, stragglers } = result;
  const error = result.error ?? (isLast ? attachment.native.firstError() : null);
  if (warnSeenAfterMs !== undefined) warnOfSlowThreads(attachment, warnSeenAfterMs);
  const isQuiet = error !== null || ignoreLiveThreads === true;
  if (stragglers.length > 0 && isQuiet) warnOfStragglers(attachment, stragglers);
  if (stragglers.length === 0 || isQuiet) return error;
  const places = stacks === true ? await Places.find(STACKS_TIMEOUT_MS, '') : undefined;
  throw new StragglersError(stragglersMessage(stragglers), {
    stragglers: stragglers.map((thread) => ({
      ...toStraggler(thread, stop?.ageMs ?? 0),
      ...places?.of(attachment, thread),
    })),
  });
}

/**
 * Waits for the end of the threads that are registered now.
 *
 * @throws (rejects) SelfJoinError; the reason of `signal`
 */
async function threadsEnd(
  attachment: Attachment,
  gracePeriodMs: number,
  signal: AbortSignal | undefined,
): Promise<NativeJoinResult> {
  throwIfAborted(signal);
  const { native } = attachment;
  const id = native.beginJoin(enclosingTasks(attachment));
  if (id === null) throw selfJoin(attachment);
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    let warning: Timer | undefined;
    let warnedOf: number | undefined; // the generation of the stop for which `warning` runs, or has run
    let nextTurn: NodeJS.Immediate | undefined;
    const end = (): void => {
      timer?.clear();
      warning?.clear();
      clearImmediate(nextTurn);
      if (signal) removeAbortListener(signal, onAbort);
      unfollow();
    };
    const finish = (): void => {
      clearImmediate(nextTurn);
      nextTurn = undefined;
      const result = native.finishJoin(id, gracePeriodMs);
      if (result === null) return progress(); // the join must wait on
      end();
      logNativeStop(attachment); // the stop may have been there before anything watched
      resolve(result);
    };
    const progress = (): void => {
      timer?.clear();
      const left = native.joinRemainingMs(id, gracePeriodMs);
      if (left > 0) {
        timer = new Timer(left, progress);
        if (!attachment.shouldStop() || warnedOf === native.generation()) return;
        warnedOf = native.generation();
        warning?.clear();
        warning = new Timer(STILL_WAITING_MS, () => warnOfWaiting(attachment)).unref();
      } else if (native.joinHasEnded(id)) finish();
      // The threads may have ended while this one was busy. It learns of that in its next turn, so
      // before that turn the join calls none of them a straggler.
      else nextTurn ??= setImmediate(finish);
    };
    const onAbort = (): void => {
      end();
      native.abandonJoin(id);
      reject(reasonOfAbort(signal));
    };
    try {
      if (signal) addAbortListener(signal, onAbort);
    } catch (error) {
      native.abandonJoin(id); // a signal of the program may throw
      throw error;
    }
    const unfollow = follow(attachment, progress);
    progress();
  });
}

/** From now on calls `progress` when a join may have ended. Keeps the event loop alive. */
function follow(attachment: Attachment, progress: () => void): () => void {
  const unlisten = attachment.listen('join', progress);
  hold();
  return () => {
    if (unlisten()) release();
  };
}

/**
 * Resolves when no registered thread is alive but daemon threads, also none that was registered
 * meanwhile, or when a stop is requested, even if it is cleared at once. Marks nothing as joined.
 */
export async function untilIdle(attachment: Attachment): Promise<void> {
  const { native } = attachment;
  const generation = native.generation();
  const isStopped = (): boolean => attachment.shouldStop() || native.generation() !== generation;
  const unwatch = warnOfOnlyLoopers(attachment);
  // A thread that ends may have code waiting for it that starts the next: it runs in this turn.
  for (await turn(); !isStopped(); await turn()) {
    const id = native.threads().some(holdsUp) ? native.beginJoin([], false) : null;
    if (id === null) break; // idle, or this worker is registered itself: join() says so
    await new Promise<void>((resolve) => {
      const progress = (): void => {
        if (native.joinRemainingMs(id, 0) > 0) return;
        unfollow();
        native.abandonJoin(id);
        resolve();
      };
      const unfollow = follow(attachment, progress);
      progress();
    });
  }
  unwatch();
}

const holdsUp = ({ alive, daemon }: NativeThread): boolean => alive && daemon !== true;

/** After this time a nursery says that only loopers hold it up. */
const ONLY_LOOPERS_MS = 10_000;

/**
 * Warns, once in a process, of a nursery whose body has returned and that waits only for loopers,
 * which end at the stop: it waits for ever, unless the program sees to a stop.
 *
 * @returns a function that ends the watch
 */
function warnOfOnlyLoopers(attachment: Attachment): () => void {
  let timer: Timer | undefined;
  const look = (): void => {
    const holding = attachment.native.threads().filter(holdsUp);
    const isForgotten = ({ kind, daemon }: NativeThread): boolean =>
      THREAD_KINDS[kind] === 'looper' && daemon === undefined;
    if (holding.length === 0 || !holding.every(isForgotten)) return begin();
    if (!binding().mayWarnOfLoopers()) return;
    const names = holding.map(({ name }) => `'${name}'`).join(', ');
    warn(
      'OnlyLoopersWarning',
      'ALLSTOP_ONLY_LOOPERS',
      `Coordinator.run() of '${attachment.native.name}' has waited ${ONLY_LOOPERS_MS / 1_000} s only for loopers, which end at a stop: ${names}`,
      'Let the function await coord.waitForStop(), as that of a server does; or call requestStop() when ' +
        'the work is done. A looper that only serves other threads is { daemon: true }. { daemon: false } ' +
        'says that run() shall wait for the looper.',
    );
  };
  const begin = (): void => {
    timer = new Timer(ONLY_LOOPERS_MS, look).unref();
  };
  begin();
  return () => timer?.clear();
}

const MOST_NAMES = 8;

/** After this time within its grace period, a join says for whom it waits. */
const STILL_WAITING_MS = 10_000;

/**
 * Warns of a join whose threads have not ended long after the stop, once for each stop: a program
 * that was asked to stop would seem to hang. The event loop is not kept alive for that.
 */
function warnOfWaiting(attachment: Attachment): void {
  const { native } = attachment;
  const alive = native.threads().filter((thread) => thread.alive);
  // A join is not told that a stop was cleared, nor at once that its last thread has ended.
  if (alive.length === 0 || !attachment.shouldStop()) return;
  const names = alive.slice(0, MOST_NAMES).map(({ name }) => `'${name}'`);
  const more = alive.length > MOST_NAMES ? ` and ${alive.length - MOST_NAMES} more` : '';
  const isWorker = alive.some(({ kind }) => THREAD_KINDS[kind] === 'worker');
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

/** What TensorFlow logs, or throws, when a join ends before the threads do. */
function stragglersMessage(stragglers: readonly NativeThread[]): string {
  const names = stragglers
    .map(({ name, hasBegun }) => printable(name) + (hasBegun ? '' : ` (${NOT_BEGUN})`))
    .join(' ');
  return `Coordinator stopped with threads still running: ${names}`;
}

/** For a join that leaves threads behind, and does not throw an error that names them. */
function warnOfStragglers(attachment: Attachment, stragglers: readonly NativeThread[]): void {
  warn(
    'StragglersWarning',
    'ALLSTOP_STRAGGLERS',
    stragglersMessage(stragglers),
    `leftBehind and explain() of the coordinator '${attachment.native.name}' list them until they end.`,
  );
}

/** `join({ warnSeenAfterMs })`: warns of the threads that took longer than `limitMs` from the newest stop until they saw it. */
function warnOfSlowThreads(attachment: Attachment, limitMs: number): void {
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
