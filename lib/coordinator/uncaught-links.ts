/** Links to errors that nothing in the program has caught: in this JavaScript thread, in Workers. */

import { isMainThread, type Worker } from 'node:worker_threads';
import { binding, threadName } from '../native/native.ts';
import type { Attachment } from './attachment.ts';
import { describedLink } from './links.ts';
import { report } from './requests.ts';
import { causeOfDeath, forgetWorker } from './threads/causes-of-death.ts';
import { failWith, tellUnseenAtExit } from './unseen-errors.ts';

/** One listener for all links, as Node warns about the eleventh listener of an event. */
const onUncaught = new Set<(error: unknown) => void>();

function dispatch(error: unknown): void {
  for (const listener of onUncaught) listener(error);
  tellUnseenAtExit(); // of a listener of 'exit' that was called after the errors had been written
}

export function stopOnUncaught(attachment: Attachment, stack: string): Disposable {
  const stop = (error: unknown): void => {
    const from = { via: 'uncaught', stack, hasCaller: false, isThrown: true } as const;
    const isEcho =
      report(attachment, error, from) === 'echo' && attachment.native.status() === null;
    if (isEcho) return; // of a stop without an error, a Ctrl-C for example: nothing has failed
    failWith(1);
    if (!isMainThread) binding().failProcess();
  };
  const description = `the uncaught errors of the thread '${threadName()}' (stopOnUncaught)`;
  const link = describedLink(attachment, description, () => {
    onUncaught.delete(stop);
    if (onUncaught.size > 0) return;
    process.off('uncaughtException', dispatch);
    process.off('unhandledRejection', dispatch);
  });
  if (onUncaught.size === 0) {
    process.on('uncaughtException', dispatch);
    // Of its own, since Node wraps a rejected value that is no Error for 'uncaughtException'.
    process.on('unhandledRejection', dispatch);
  }
  onUncaught.add(stop);
  return link;
}

const adopters = new Set<(worker: Worker) => void>();

function adopt(worker: Worker): void {
  for (const adopter of adopters) adopter(worker);
}

export function adoptWorkers(attachment: Attachment): Disposable {
  const adopted = new Map<Worker, () => void>();
  const follow = (worker: Worker): void => {
    const { threadId } = worker;
    const onError = (error: unknown): void => {
      const from = { threadName: `worker-${threadId}`, threadId, hasCaller: false, isThrown: true };
      report(attachment, causeOfDeath(threadId, error), { via: 'worker-exit', ...from });
    };
    const leave = (): void => {
      worker.off('error', onError);
      worker.off('exit', onExit);
      adopted.delete(worker);
    };
    const onExit = (): void => {
      leave();
      forgetWorker(threadId);
    };
    worker.on('error', onError);
    worker.on('exit', onExit);
    adopted.set(worker, leave);
  };
  let isUndone = false;
  const description = `the Workers that the thread '${threadName()}' creates (adoptWorkers)`;
  const link = describedLink(attachment, description, () => {
    isUndone = true;
    if (adopters.delete(follow) && adopters.size === 0) process.off('worker', adopt);
    for (const leave of adopted.values()) leave();
  });
  // Node announces a Worker in a tick of its own. Those that were created before this call come
  // before this tick, and are not adopted.
  process.nextTick(() => {
    if (isUndone) return;
    if (adopters.size === 0) process.on('worker', adopt);
    adopters.add(follow);
  });
  return link;
}
