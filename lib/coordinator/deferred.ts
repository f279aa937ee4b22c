/**
 * Deferred functions: `run` and disposal call them when the threads have ended, the last registered
 * first, one after the other. A hook would close what a thread still uses.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { binding } from '../native/native.ts';
import type { Attachment } from './attachment.ts';
import { Link } from './link.ts';
import { report, reportBeside } from './requests.ts';
import { runAtEnd } from './threads/tasks.ts';
import { Watch } from './threads/watch.ts';

type Deferred = {
  readonly name: string;
  readonly run: () => unknown;
  /** Calls a function in the async context in which the deferred one was registered. */
  readonly inItsContext: (body: () => Promise<void>) => Promise<void>;
};

/** In the order of registration. */
const lists = new WeakMap<Attachment, Deferred[]>();

/** `Coordinator.defer`, which documents it. */
export function defer(attachment: Attachment, run: () => unknown, name: string): Disposable {
  const list = lists.get(attachment) ?? [];
  lists.set(attachment, list);
  const deferred = { name, run, inItsContext: AsyncLocalStorage.snapshot() };
  list.push(deferred);
  return new Link(`the deferred function '${name}' (defer)`, () => {
    const place = list.lastIndexOf(deferred);
    if (place >= 0) list.splice(place, 1); // else it has been called
  });
}

/**
 * Calls the deferred functions of this JavaScript thread, those too that are registered meanwhile.
 * Their errors go to the coordinator. `isThrowing`: an error will be thrown in any case.
 */
export async function callDeferred(attachment: Attachment, isThrowing: boolean): Promise<void> {
  const list = lists.get(attachment) ?? [];
  for (let last = list.pop(); last !== undefined; last = list.pop()) {
    await call(attachment, last, isThrowing);
  }
}

async function call(
  attachment: Attachment,
  { name, run, inItsContext }: Deferred,
  isThrowing: boolean,
): Promise<void> {
  // A thread, so that `exitAfterStop` and diagnose() name it if it hangs.
  const watch = new Watch(attachment, 'task', name);
  const givenBefore = binding().errorsGivenSoFar();
  try {
    await inItsContext(() => runAtEnd(attachment, watch, run, run));
  } catch (error) {
    const from = { via: 'defer', threadName: name } as const;
    if (isThrowing) report(attachment, error, { ...from, hasCaller: false, isThrown: true });
    else reportBeside(attachment, error, from, givenBefore);
  } finally {
    watch.end();
  }
}
