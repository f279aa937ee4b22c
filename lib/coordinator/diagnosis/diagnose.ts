/** `diagnose()`: `explain()`, and where each thread is. */

import { checkDuration, checkOptions } from '../../base/arguments.ts';
import { shownAsText } from '../../base/inspect.ts';
import type { Straggler } from '../../errors/errors.ts';
import type { Attachment } from '../attachment.ts';
import { explain, type StopExplanation, toStraggler } from '../explain.ts';
import { type ThreadInfo, toThreadInfo } from '../threads/watch.ts';
import { fitTerminal, printable } from '../words.ts';
import { type JavaScriptThread, type Place, Places, STACKS_TIMEOUT_MS } from './places.ts';

/** The options of `diagnose`. */
export type DiagnoseOptions = {
  /** Milliseconds for all threads together. Default: 1,000. */
  timeoutMs?: number | undefined;
};

/** `explain()` with places: each thread has a `stack`, or a `waitState` in words. */
export type Diagnosis = Omit<StopExplanation, 'threads'> & {
  /** The registered threads, which have not ended. */
  threads: (ThreadInfo & Place)[];
  /** The JavaScript threads of this process, registered or not. */
  javaScriptThreads: JavaScriptThread[];
};

function placeLines(title: string, { stack, waitState }: Place): string[] {
  if (stack === undefined) return [`  - ${title}: ${waitState}`];
  return [`  - ${title}:`, ...stack.split('\n').map((line) => `      ${line}`)];
}

/** `Coordinator.diagnose`, which documents it. `ownStack`: of the caller. */
export async function diagnose(
  attachment: Attachment,
  options: DiagnoseOptions | undefined,
  ownStack: string,
): Promise<Diagnosis> {
  const known = { timeoutMs: checkDuration };
  const { timeoutMs = STACKS_TIMEOUT_MS } = checkOptions('options', options, known);
  const lines = ownStack.split('\n').map((line) => line.trim());
  const places = await Places.find(timeoutMs, lines.join('\n'));
  const explanation = explain(attachment);
  const { native } = attachment;
  const threads = native
    .threads()
    .map((each) => ({ ...toThreadInfo(each), ...places.of(attachment, each) }));
  const leftBehind: Straggler[] = native
    .leftBehindThreads()
    .map((each) => ({ ...toStraggler(each, each.stopAgeMs), ...places.of(attachment, each) }));
  const javaScriptThreads = [...places.javaScriptThreads];
  return shownAsText({
    ...explanation,
    threads,
    leftBehind,
    javaScriptThreads,
    toString(): string {
      const text: string[] = [];
      const alive = [...threads.filter((thread) => thread.alive), ...leftBehind];
      if (alive.length > 0) text.push('Where the threads are:');
      for (const thread of alive) {
        const id = thread.threadId === undefined ? '' : ` ${thread.threadId}`;
        text.push(...placeLines(`${thread.name} (${thread.kind}${id})`, thread));
      }
      const isListed = ({ threadId }: JavaScriptThread): boolean =>
        alive.some((thread) => thread.threadId === threadId && thread.kind === 'worker');
      const others = javaScriptThreads.filter((thread) => !isListed(thread));
      text.push('Where the other JavaScript threads are:');
      for (const thread of others) {
        text.push(...placeLines(`${thread.name} (${thread.threadId})`, thread));
      }
      return fitTerminal([explanation.toString(), ...text.map(printable)]);
    },
  });
}
