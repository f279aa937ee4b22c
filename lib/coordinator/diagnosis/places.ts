/** Where threads are: a stack, or what they wait for and why there is no stack. */

import { workerThreads } from '../../base/builtins.ts';
import { type NativeThread, THREAD_KINDS } from '../../native/binding.ts';
import { binding, threadName } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';
import { doingOf } from '../threads/task-context.ts';
import { type Asked, type AskedThread, askThreads, FunctionLines } from './inspector.ts';
import { waitOfProcess, waitOfThread } from './wait-state.ts';

/** Where a thread is. One of the two fields is there. */
export type Place = {
  /** The lines of the stack of a JavaScript thread, the innermost call first. */
  stack?: string;
  /** Of a thread without a stack: what it waits for, or why its stack cannot be had. */
  waitState?: string;
};

/** A JavaScript thread of this process, and where it is. */
export type JavaScriptThread = Place & {
  /** 0: the main thread. */
  threadId: number;
  /** The name of the thread: 'main', that of a Worker, or 'worker-N'. */
  name: string;
};

/** The default time for all threads together. */
export const STACKS_TIMEOUT_MS = 1_000;

/** What the kernel says of a JavaScript thread, or ''. */
function kernelsWords(threadId: number): string {
  // The first thread of a process has the id of the process, on Linux.
  const osThreadId = threadId === 0 ? process.pid : binding().osThreadIdOf(threadId);
  const state = osThreadId === 0 ? undefined : waitOfThread(osThreadId);
  return state === undefined ? '' : `; it ${state}`;
}

function placeOfAsked(threadId: number, { answer }: AskedThread, timeoutMs: number): Place {
  if (answer === undefined) {
    const late = `blocked in native code: no answer within ${timeoutMs} ms`;
    return { waitState: `${late}${kernelsWords(threadId)}` };
  }
  if (answer.stack !== '') return { stack: answer.stack };
  const { resources } = answer;
  const open = resources.length === 0 ? '' : `, which has: ${resources.join(', ')}`;
  return { waitState: `idle in its event loop${open}` };
}

/** Where all threads are that can be found, at one moment. */
export class Places {
  readonly javaScriptThreads: readonly JavaScriptThread[];
  readonly #why: string;
  readonly #lines = new FunctionLines();

  /** `ownStack`: of this thread; '' if it waits here only. */
  private constructor({ threads, why }: Asked, timeoutMs: number, ownStack: string) {
    const own = ownStack === '' ? { waitState: 'awaits this answer' } : { stack: ownStack };
    const found: JavaScriptThread[] = [
      { threadId: workerThreads().threadId, name: threadName(), ...own },
    ];
    for (const [threadId, asked] of threads) {
      found.push({ threadId, name: asked.name, ...placeOfAsked(threadId, asked, timeoutMs) });
    }
    this.javaScriptThreads = found.toSorted((a, b) => a.threadId - b.threadId);
    this.#why = why;
  }

  static async find(timeoutMs: number, ownStack: string): Promise<Places> {
    return new Places(await askThreads(timeoutMs), timeoutMs, ownStack);
  }

  /** Where a registered thread is. */
  of(attachment: Attachment, thread: NativeThread): Place {
    const { threadId, isOsThread, alive } = thread;
    const kind = THREAD_KINDS[thread.kind];
    if (!alive) return { waitState: kind === 'hook' ? 'runs at the stop' : 'was not started' };
    if (!thread.hasBegun) {
      return {
        waitState:
          'has not begun: its thread is busy, or runs the hooks that were registered after it',
      };
    }
    if (kind === 'native') {
      const state = isOsThread && threadId !== undefined ? waitOfThread(threadId) : undefined;
      return { waitState: state ?? 'a native thread: this system does not say what it waits for' };
    }
    if (kind === 'process') {
      const state = threadId === undefined ? undefined : waitOfProcess(threadId);
      return { waitState: `another process${state === undefined ? '' : `; it ${state}`}` };
    }
    if (threadId === undefined) {
      const { written, awaits } = doingOf(attachment, thread.id) ?? {};
      const what = awaits?.() ?? 'a promise, which has no stack';
      const line = written === undefined ? undefined : this.#lines.of(written);
      const where = line === undefined ? '' : `; its function is at ${line}`;
      return { waitState: `has no thread of its own: it awaits ${what}${where}` };
    }
    const found = this.javaScriptThreads.find((each) => each.threadId === threadId);
    if (found === undefined) {
      return { waitState: `its stack cannot be had: ${this.#why}${kernelsWords(threadId)}` };
    }
    const { stack, waitState = '' } = found;
    return stack === undefined ? { waitState } : { stack };
  }
}
