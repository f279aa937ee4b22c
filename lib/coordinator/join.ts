/** Waits for the end of registered threads: the joins of this JavaScript thread. */

import { addAbortListener, removeAbortListener } from '../base/abort-listeners.ts';
import { Timer } from '../base/timer.ts';
import { turn } from '../base/turn.ts';
import { SelfJoinError } from '../errors/errors.ts';
import type { NativeJoinResult } from '../native/binding.ts';
import type { Attachment } from './attachment.ts';
import { logNativeStop } from './debug-log.ts';

function selfJoin(attachment: Attachment): SelfJoinError {
  return new SelfJoinError(
    `A thread or task of the coordinator '${attachment.native.name}' called its join(), which would ` +
      'wait for the caller. Call join() elsewhere, or use waitForStop()',
  );
}

/** @throws SelfJoinError */
export function refuseSelfJoin(attachment: Attachment, tasks: number[]): void {
  if (attachment.native.wouldJoinItself(tasks)) throw selfJoin(attachment);
}

/**
 * Waits for the end of the threads that are registered now. `tasks`: the async tasks that the
 * caller runs in.
 *
 * @throws (rejects) SelfJoinError; the reason of `signal`
 */
export async function joinThreads(
  attachment: Attachment,
  gracePeriodMs: number,
  tasks: number[],
  signal: AbortSignal | undefined,
): Promise<NativeJoinResult> {
  if (signal?.aborted) throw signal.reason;
  const { native } = attachment;
  const join = native.beginJoin(tasks);
  if (join === null) throw selfJoin(attachment);
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    const end = (): void => {
      timer?.clear();
      clearImmediate(nextTurn);
      if (signal) removeAbortListener(signal, onAbort);
      attachment.endJoin(progress);
    };
    const progress = (): void => {
      timer?.clear();
      let result: NativeJoinResult | null = null;
      while (result === null) {
        const left = native.joinRemainingMs(join, gracePeriodMs);
        if (left > 0) {
          timer = new Timer(left, progress);
          return;
        }
        result = native.finishJoin(join, gracePeriodMs); // null if the join must wait on
      }
      end();
      logNativeStop(attachment); // the stop may have been there before anything watched
      resolve(result);
    };
    const onAbort = (): void => {
      end();
      native.abandonJoin(join);
      reject(signal?.reason);
    };
    if (signal) addAbortListener(signal, onAbort);
    attachment.beginJoin(progress);
    // A registered promise may be settled already, but its Watch learns that only after this
    // turn: a join with a grace period of 0 must not report the promise as a straggler.
    const nextTurn = setImmediate(progress);
    if (native.joinHasEnded(join)) progress();
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
    const join = native.beginJoin([]);
    if (join === null) return; // this worker is registered itself: join() says so
    await new Promise<void>((resolve) => {
      const progress = (): void => {
        if (native.joinRemainingMs(join, 0) > 0) return;
        attachment.endJoin(progress);
        native.abandonJoin(join);
        resolve();
      };
      attachment.beginJoin(progress);
      progress();
    });
  }
}
