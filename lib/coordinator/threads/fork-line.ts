/**
 * Opens the line (native/binding/fork_line.h) to a child process that is about to be started, so
 * that the child hears this coordinator's stop on a native thread.
 */

import { binding } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';

/** What the start of the child needs of the line. */
export type LineEnd = {
  readonly id: number;
  /** The descriptors that the child inherits, as entries of `stdio`: none on Windows. */
  readonly inherited: readonly number[];
  /** Where the child finds its end, if the first of `inherited` is its descriptor `at`. */
  down(at: number): number | string;
};

/** Calls `start`, which starts the child. If it throws, the line is closed. */
export function openLine<T>(attachment: Attachment, start: (line: LineEnd) => T): T {
  const native = binding();
  const { id, end } = native.openForkLine(attachment.native);
  const inherited = typeof end === 'number' ? [end] : [];
  try {
    return start({ id, inherited, down: (at) => (typeof end === 'number' ? at : end) });
  } catch (error) {
    native.closeForkLine(id);
    throw error;
  } finally {
    for (const descriptor of inherited) native.closeForkDescriptor(descriptor);
  }
}
