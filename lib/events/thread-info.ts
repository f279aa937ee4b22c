/** What the program is told of a registered thread. */

import { type NativeThread, THREAD_KINDS, type ThreadKind } from '../native/binding.ts';

/** A registered thread, or one of the last 64 that have ended. */
export type ThreadInfo = {
  /** The name with which the thread was registered. */
  name: string;
  /**
   * What the thread is:
   *
   * - 'worker': a Worker
   * - 'process': a child process
   * - 'task': a function of `start`, or a registered promise
   * - 'looper': a LooperThread
   * - 'native': a thread of C, C++ or Rust
   * - 'hook': a function of `onStop`
   * - 'custom': another object with a `join()`
   */
  kind: ThreadKind;
  /** Whether it has started and not ended. */
  alive: boolean;
  /** Set on a hook that has to run for the stop, and whose turn has not come. */
  hasBegun?: false;
  /** The option `daemon`. Left out if nothing was said. */
  daemon?: boolean;
  /** The threadId of a worker, the OS thread id of a native thread, or the pid of a process. */
  threadId?: number;
  /** When it was started or, if it has not been, registered. */
  startedAt: Date;
  /** When it ended. Left out while it has not. */
  endedAt?: Date;
  /** Set if nobody saw this thread end: the JavaScript thread that watched it had ended before. */
  unobserved?: true;
};

export function toThreadInfo(native: Omit<NativeThread, 'id' | 'isOsThread'>): ThreadInfo {
  const info: ThreadInfo = {
    name: native.name,
    kind: THREAD_KINDS[native.kind] ?? 'custom',
    alive: native.alive,
    startedAt: new Date(native.startedAt),
  };
  if (native.threadId !== undefined) info.threadId = native.threadId;
  if (native.endedAt !== 0) info.endedAt = new Date(native.endedAt);
  if (native.daemon !== undefined) info.daemon = native.daemon;
  if (!native.hasBegun) info.hasBegun = false;
  if (native.unobserved) info.unobserved = true;
  return info;
}
