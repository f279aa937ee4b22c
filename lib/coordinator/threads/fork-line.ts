/**
 * The parent's end of the line to a child process (native/binding/fork_line.h): opens it before the
 * child is started, so that the child hears this coordinator's stop on a native thread, and cuts
 * what the child sends into frames.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { binding } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';

/** The bytes of a frame's length, before it. */
const LENGTH_BYTES = 4;

/** What the start of the child needs of the line. */
export type LineEnd = {
  readonly id: number;
  /** The descriptors that the child inherits, as entries of `stdio`: none on Windows. */
  readonly inherited: readonly number[];
  /** Where the child finds its end, if the first of `inherited` is its descriptor `at`. */
  down(at: number): number | string;
};

function open(attachment: Attachment): { id: number; end: number | string } {
  try {
    return binding().openForkLine(attachment.native);
  } catch (error) {
    const text = `The process cannot be started: ${messageOf(error)}`;
    throw new UnavailableError(text, { cause: error });
  }
}

/**
 * Calls `start`, which starts the child. If it throws, the line is closed. If this thread is
 * terminated here, no `finally` runs: the line ends with the thread, and closes its descriptors.
 *
 * @throws UnavailableError: the system has no descriptor or thread for the line; what `start` throws
 */
export function openLine<T>(attachment: Attachment, start: (line: LineEnd) => T): T {
  const native = binding();
  const { id, end } = open(attachment);
  const inherited = typeof end === 'number' ? [end] : [];
  try {
    return start({ id, inherited, down: (at) => (typeof end === 'number' ? at : end) });
  } catch (error) {
    native.closeForkLine(id);
    throw error;
  } finally {
    native.closeForkDescriptor(id);
  }
}

/** Cuts what arrives on a stream into frames (native/binding/fork_frame.h). */
export class FrameReader {
  #pieces: Buffer[] = [];
  #length = 0;
  /** How long the pieces have to be until a frame, or its length, is whole. */
  #needed = LENGTH_BYTES;

  /** @returns the frames that `bytes` has made whole, without their lengths */
  add(bytes: Buffer): Buffer[] {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    const frames: Buffer[] = [];
    // The pieces of a long frame are joined when its length is known, and when it is whole.
    if (this.#length >= this.#needed) {
      const all = Buffer.concat(this.#pieces);
      let at = 0;
      let needed = LENGTH_BYTES;
      while (all.length - at >= LENGTH_BYTES) {
        needed = LENGTH_BYTES + all.readUInt32LE(at);
        if (all.length - at < needed) break;
        frames.push(all.subarray(at + LENGTH_BYTES, at + needed));
        at += needed;
        needed = LENGTH_BYTES;
      }
      this.#pieces = [all.subarray(at)];
      this.#length = all.length - at;
      this.#needed = needed;
    }
    return frames;
  }
}
