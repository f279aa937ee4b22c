/** Warnings that a program gets though it ends at once. */

import { printable } from './words.ts';

type Warning = Error & { code: string; detail: string };

/** Those that `process.emitWarning` has not emitted yet. */
const pending = new Set<Warning>();

/** One listener for all: a program may leave many threads behind in one turn. */
function emitPending(): void {
  for (const warning of pending) process.emit('warning', warning);
  pending.clear();
}

/**
 * As `process.emitWarning`, which emits the warning in the next tick. A process that an error ends
 * before that tick, or `process.exit()`, emits it while it exits. This matters because the error
 * of a `join()` that nothing catches ends the process at once, and the warning says what that
 * error does not. Both texts are lines: the names in them show control characters as escapes.
 */
export function warn(name: string, code: string, message: string, detail: string): void {
  const warning = Object.assign(new Error(printable(message)), {
    name,
    code,
    detail: printable(detail),
  });
  if (pending.size === 0) process.once('exit', emitPending);
  pending.add(warning);
  process.emitWarning(warning);
  process.nextTick(() => {
    pending.delete(warning);
    if (pending.size === 0) process.off('exit', emitPending);
  });
}
