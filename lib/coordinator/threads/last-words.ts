/** What a child process says after its exit was seen, and before it counts as ended. */

import type { ChildProcess } from 'node:child_process';

export interface LastWords {
  /** The error that the child has died of, if it has said so. */
  readonly cause: { value: unknown } | undefined;
  /**
   * The exit code that allstop has set in the child, by its own account: 128 + n for a signal, 1 for
   * errors. Undefined if it has set none, or if it was for errors of which the child has told none.
   */
  readonly exitCode: number | undefined;
  /** Calls `then` when all that the child has written was read. */
  whenRead(then: () => void): void;
}

const lastWords = new WeakMap<ChildProcess, LastWords>();

export function expectLastWords(child: ChildProcess, words: LastWords): void {
  lastWords.set(child, words);
}

/** Calls `then` when the child has no more to say; without words if it was not expected to speak. */
export function afterLastWords(
  child: ChildProcess,
  then: (words: LastWords | undefined) => void,
): void {
  const words = lastWords.get(child);
  if (words === undefined) then(undefined);
  else words.whenRead(() => then(words));
}
