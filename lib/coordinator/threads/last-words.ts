/** What a child process says after its exit was seen, and before it counts as ended. */

import type { ChildProcess } from 'node:child_process';

export interface LastWords {
  /** The error that the child has died of, if it has said so. */
  readonly cause: { value: unknown } | undefined;
  /** Calls `then` when all that the child has written was read. */
  whenRead(then: () => void): void;
}

const lastWords = new WeakMap<ChildProcess, LastWords>();

export function expectLastWords(child: ChildProcess, words: LastWords): void {
  lastWords.set(child, words);
}

/** Calls `then` with the error that the child has died of, when the child has no more to say. */
export function afterLastWords(
  child: ChildProcess,
  then: (cause: { value: unknown } | undefined) => void,
): void {
  const words = lastWords.get(child);
  if (words === undefined) then(undefined);
  else words.whenRead(() => then(words.cause));
}
