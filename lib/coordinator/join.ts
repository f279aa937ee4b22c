/** Waits for the end of registered threads: the joins of this JavaScript thread. */

import { addAbortListener, removeAbortListener } from '../base/abort-listeners.ts';
import {
  checkBoolean,
  checkDuration,
  checkOptions,
  checkSignal,
  holds,
  invalidType,
  isIterable,
} from '../base/arguments.ts';
import { enclosingTasks } from '../base/task-context.ts';
import { Timer } from '../base/timer.ts';
import { turn } from '../base/turn.ts';
import { SelfJoinError, StragglersError } from '../errors/errors.ts';
import type { NativeJoinResult } from '../native/binding.ts';
import type { Attachment } from './attachment.ts';
import { JOIN_OPTIONS, type JoinOptions } from './coordinator-options.ts';
import { logNativeStop } from './debug-log.ts';
import { Places, STACKS_TIMEOUT_MS } from './diagnosis/places.ts';
import {
  StillWaitingWarning,
  stragglersMessage,
  toStraggler,
  warnOfStragglers,
} from './threads/stragglers.ts';
import { awaiting } from './threads/tasks.ts';
import { checkThread, isThread, type JoinableThread, register } from './threads/watch.ts';
import { warnOfSlowThreads } from './timeline/slow-threads.ts';

function selfJoin(attachment: Attachment): SelfJoinError {
  return new SelfJoinError(
    `A thread or task of the coordinator '${attachment.native.name}' called its join(), which would ` +
      'wait for the caller. Call join() elsewhere, or use waitForStop()',
  );
}

/** The checked options of a join. */
type Wish = Omit<JoinOptions, 'stopGracePeriodMs'> & {
  /** `run` and disposal: without an error of the stop, the first later one is thrown. */
  isLast?: boolean;
};

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
  const { stopGracePeriodMs = attachment.native.stopGracePeriodMs } = options;
  const { ignoreLiveThreads = false, stacks = false, warnSeenAfterMs, signal } = options;
  checkDuration('options.stopGracePeriodMs', stopGracePeriodMs);
  checkBoolean('options.ignoreLiveThreads', ignoreLiveThreads);
  checkBoolean('options.stacks', stacks);
  if (warnSeenAfterMs !== undefined) checkDuration('options.warnSeenAfterMs', warnSeenAfterMs);
  if (signal !== undefined) checkSignal('options.signal', signal);
  const threads = passed ? [...first] : [];
  for (const thread of threads) checkThread(attachment, 'threads[]', thread);
  if (signal?.aborted) throw signal.reason;
  const tasks = enclosingTasks(attachment);
  // First: a refused call must register no thread.
  if (attachment.native.wouldJoinItself(tasks)) throw selfJoin(attachment);
  for (const thread of threads) register(attachment, thread);
  const wish = { ignoreLiveThreads, stacks, warnSeenAfterMs, signal };
  await joinRegistered(attachment, stopGracePeriodMs, tasks, wish);
}

/** The join with which `run` and disposal end. */
export async function joinLast(attachment: Attachment, ignoreLiveThreads: boolean): Promise<void> {
  const { stopGracePeriodMs } = attachment.native;
  const wish = { ignoreLiveThreads, isLast: true };
  await joinRegistered(attachment, stopGracePeriodMs, enclosingTasks(attachment), wish);
}

async function joinRegistered(
  attachment: Attachment,
  gracePeriodMs: number,
  tasks: number[],
  { ignoreLiveThreads, stacks, warnSeenAfterMs, signal, isLast }: Wish,
): Promise<void> {
  const what = (): string => {
    const alive = attachment.native.threads().filter((thread) => thread.alive);
    const names = alive.map(({ name }) => name).join(', ');
    return `a join() of the coordinator '${attachment.native.name}', which waits for: ${names}`;
  };
  const result = await awaiting(what, threadsEnd(attachment, gracePeriodMs, tasks, signal));
  const { stop, stragglers } = result;
  const error = result.error ?? (isLast === true ? attachment.native.firstError() : null);
  if (warnSeenAfterMs !== undefined) warnOfSlowThreads(attachment, warnSeenAfterMs);
  const isQuiet = error !== null || ignoreLiveThreads === true;
  if (stragglers.length > 0 && isQuiet) warnOfStragglers(attachment, stragglers);
  if (error !== null) throw attachment.give(error);
  if (stragglers.length === 0 || isQuiet) return;
  const places = stacks === true ? await Places.find(STACKS_TIMEOUT_MS, '') : undefined;
  throw new StragglersError(stragglersMessage(stragglers), {
    stragglers: stragglers.map((thread) => ({
      ...toStraggler(thread, stop?.ageMs ?? 0),
      ...places?.of(attachment, thread),
    })),
  });
}

/**
 * Waits for the end of the threads that are registered now. `tasks`: the async tasks that the
 * caller runs in.
 *
 * @throws (rejects) SelfJoinError; the reason of `signal`
 */
async function threadsEnd(
  attachment: Attachment,
  gracePeriodMs: number,
  tasks: number[],
  signal: AbortSignal | undefined,
): Promise<NativeJoinResult> {
  if (signal?.aborted) throw signal.reason;
  const { native } = attachment;
  const id = native.beginJoin(tasks);
  if (id === null) throw selfJoin(attachment);
  const warning = new StillWaitingWarning(attachment);
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    let nextTurn: NodeJS.Immediate | undefined;
    const end = (): void => {
      timer?.clear();
      warning.end();
      clearImmediate(nextTurn);
      if (signal) removeAbortListener(signal, onAbort);
      attachment.endJoin(progress);
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
        if (attachment.shouldStop()) warning.begin();
      } else if (native.joinHasEnded(id)) finish();
      // The threads may have ended while this one was busy. It learns of that in its next turn, so
      // before that turn the join calls none of them a straggler.
      else nextTurn ??= setImmediate(finish);
    };
    const onAbort = (): void => {
      end();
      native.abandonJoin(id);
      reject(signal?.reason);
    };
    if (signal) addAbortListener(signal, onAbort);
    attachment.beginJoin(progress);
    progress();
  });
}

/**
 * Resolves when no registered thread is alive, also none that was registered meanwhile, or when a
 * stop is requested, even if it is cleared at once. Marks nothing as joined.
 */
export async function untilIdle(attachment: Attachment): Promise<void> {
  const { native } = attachment;
  const generation = native.generation();
  const isStopped = (): boolean => attachment.shouldStop() || native.generation() !== generation;
  // A thread that ends may have code waiting for it that starts the next: it runs in this turn.
  for (await turn(); !isStopped(); await turn()) {
    if (!native.threads().some(({ alive }) => alive)) return;
    const id = native.beginJoin([]);
    if (id === null) return; // this worker is registered itself: join() says so
    await new Promise<void>((resolve) => {
      const progress = (): void => {
        if (native.joinRemainingMs(id, 0) > 0) return;
        attachment.endJoin(progress);
        native.abandonJoin(id);
        resolve();
      };
      attachment.beginJoin(progress);
      progress();
    });
  }
}
