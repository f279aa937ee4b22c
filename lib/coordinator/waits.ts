/** Waits for the stop: `waitForStop` and `waitForStopSync` of a Coordinator. */

import { addAbortListener, reasonOfAbort, removeAbortListener } from '../base/abort.ts';
import { now, Timer, turn } from '../base/timer.ts';
import { SLICE_MS } from '../native/binding.ts';
import { drain, hold, release } from '../native/native.ts';
import type { Attachment } from './attachment.ts';

const settled = Promise.resolve();

/** The result of a wait that ends stopped: aborts the signal before the caller goes on. */
function isStopped(attachment: Attachment): true {
  attachment.check();
  attachment.shouldStop(); // this thread has seen the stop
  return true;
}

/** `since`: a generation. A later stop ends the wait, even if that stop has been cleared. */
export function waitForStop(
  attachment: Attachment,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  since?: number,
): Promise<boolean> {
  const wasStopped = (): boolean =>
    attachment.shouldStop() || (since !== undefined && attachment.native.generation() !== since);
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(reasonOfAbort(signal));
      return;
    }
    if (wasStopped()) {
      resolve(isStopped(attachment));
      return;
    }
    if (timeoutMs === 0) {
      // Not at once: a loop of such looks would starve the event loop.
      void turn().then(() => resolve(wasStopped() && isStopped(attachment)));
      return;
    }
    const end = (): void => {
      if (!unlisten()) return; // `end` was called before
      timer.clear();
      if (signal) removeAbortListener(signal, onAbort);
      release();
    };
    const onStop = (): void => {
      resolve(true);
      void settled.then(end); // `end` takes time, so the code that awaits the wait goes on first
    };
    const onAbort = (): void => {
      reject(reasonOfAbort(signal));
      end();
    };
    if (signal) addAbortListener(signal, onAbort); // first: a signal of the program may throw
    const timer = new Timer(timeoutMs, () => {
      resolve(attachment.shouldStop() && isStopped(attachment));
      end();
    });
    const unlisten = attachment.listen('wait', onStop);
    try {
      hold();
    } catch (error) {
      unlisten(); // the stack is full
      throw error;
    }
    if (wasStopped() && isStopped(attachment)) onStop(); // for a stop that came before `listen`
  });
}

export function waitForStopSync(attachment: Attachment, timeoutMs: number): boolean {
  const { native } = attachment;
  const generation = native.generation();
  if (attachment.shouldStop()) return isStopped(attachment);
  const deadline = now() + timeoutMs;
  // Blocks in slices: after each, V8 checks whether this worker is being terminated.
  for (let left = timeoutMs; left > 0; left = deadline - now()) {
    if (native.waitSlice(generation, Math.min(left, SLICE_MS))) {
      drain();
      return isStopped(attachment);
    }
  }
  return native.waitSlice(generation, 0) && isStopped(attachment);
}
