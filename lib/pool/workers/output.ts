/**
 * Writes what a worker thread has written to stdout and stderr to this thread's own, in the order
 * in which it was written, and before anything that the worker has sent later is read.
 */

import { Timer } from '../../base/timer.ts';
import type { FromWorker } from '../worker/messages.ts';

const nothing = (): void => {};

export class Output {
  readonly #onWritten: (descriptor: number) => void;
  /** What has come in this turn of the event loop, all for one stream. */
  #chunks: (string | Uint8Array)[] = [];
  #descriptor = 1;
  #isAsked = false;
  #immediate: NodeJS.Immediate | undefined;
  #unwritten = 0;
  #onAll: (() => void) | undefined;

  /** `onWritten`: the worker has asked when this was written. */
  constructor(onWritten: (descriptor: number) => void) {
    this.#onWritten = onWritten;
  }

  add({ descriptor, chunk, asks }: Extract<FromWorker, { kind: 'allstop:output' }>): void {
    if (descriptor !== this.#descriptor) this.flush();
    this.#descriptor = descriptor;
    this.#chunks.push(chunk);
    this.#isAsked ||= asks;
    // One write for many lines: a socket takes few small ones.
    this.#immediate ??= setImmediate(() => this.flush());
  }

  flush(): void {
    if (this.#immediate === undefined) return;
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    const chunks = this.#chunks;
    const descriptor = this.#descriptor;
    const isAsked = this.#isAsked;
    this.#chunks = [];
    this.#isAsked = false;
    this.#unwritten += 1;
    write(descriptor, chunks, () => {
      this.#unwritten -= 1;
      if (isAsked) this.#onWritten(descriptor);
      if (this.#unwritten === 0) this.#onAll?.();
    });
  }

  /**
   * The worker has ended. Calls `onAll` when all is written, or after `limitMs`: whoever reads may
   * have stopped reading. What is left then is written all the same, when it can be.
   */
  end(limitMs: number, onAll: () => void): void {
    this.flush();
    if (this.#unwritten === 0) return onAll();
    const over = (): void => {
      this.#onAll = undefined;
      limit.clear();
      onAll();
    };
    const limit = new Timer(limitMs, over);
    this.#onAll = over;
  }
}

/** As `console.log`, an error of the stream is nobody's: the reader has gone, for example. */
function write(
  descriptor: number,
  chunks: readonly (string | Uint8Array)[],
  onWritten: () => void,
): void {
  const stream = descriptor === 1 ? process.stdout : process.stderr;
  const isText = chunks.every((chunk) => typeof chunk === 'string');
  const all = isText ? chunks.join('') : Buffer.concat(chunks.map((chunk) => Buffer.from(chunk)));
  stream.once('error', nothing);
  stream.write(all, (error) => {
    if (error && stream.listenerCount('error') === 0) stream.once('error', nothing);
    onWritten();
  });
  stream.off('error', nothing);
}
