/**
 * What functions write to stdout and stderr. It never waits in the worker: a worker that ends, in
 * whatever way, has sent all that it wrote before.
 *
 * Left to Node, a thread sends one line, and the next ones only when the parent has asked for them;
 * a process keeps what a full pipe does not take. What waits so is lost when the worker is ended,
 * and when a function calls `process.exit()`.
 */

import { fstatSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { codeOf } from '../../base/thrown-value.ts';
import { binding } from '../../native/native.ts';
import type { FromWorker } from './messages.ts';

export type Done = (error?: Error | null) => void;
export type Chunk = { readonly chunk: string | Uint8Array; readonly encoding: BufferEncoding };
type Stream = Writable & { readonly fd?: number };
type Write = (chunk: string | Uint8Array, encoding: BufferEncoding, done: Done) => boolean;

const outputs = (): [number, Stream][] => [
  [1, process.stdout],
  [2, process.stderr],
];

/** Text in UTF-8 stays text. Of bytes a copy is posted: a view would be posted with all its buffer. */
function posted(
  chunk: string | Uint8Array,
  encoding: BufferEncoding | Done | undefined,
): string | Uint8Array {
  if (typeof chunk !== 'string') return new Uint8Array(chunk);
  const isText = typeof encoding !== 'string' || /^utf-?8$/i.test(encoding);
  return isText ? chunk : new Uint8Array(Buffer.from(chunk, encoding));
}

/**
 * Threads: each write is posted at once, before the result of its function. The stream itself waits
 * until the parent has written: so a function that heeds `drain` is as slow as the parent's reader.
 *
 * @returns to be called when the parent has written to this descriptor what was asked for
 */
export function postOutput(post: (message: FromWorker) => void): (descriptor: number) => void {
  const waiting = new Map<number, Done>();
  for (const [descriptor, stream] of outputs()) {
    const { write } = stream;
    let isInWrite = false;
    let asks = false;
    stream._writev = (_chunks, done) => {
      waiting.set(descriptor, done);
      if (isInWrite) asks = true;
      else post({ kind: 'allstop:output', descriptor, chunk: '', asks: true });
    };
    stream.write = ((chunk, encoding, done) => {
      const { writable } = stream; // false: `write` reports an error
      isInWrite = true;
      try {
        return Reflect.apply(write, stream, [chunk, encoding, done]);
      } finally {
        isInWrite = false;
        if (writable) {
          post({ kind: 'allstop:output', descriptor, chunk: posted(chunk, encoding), asks });
        }
        asks = false;
      }
    }) as Write as Stream['write'];
  }
  return (descriptor) => {
    const done = waiting.get(descriptor);
    waiting.delete(descriptor);
    done?.();
  };
}

export function bytesOf(chunks: readonly Chunk[]): Buffer {
  return Buffer.concat(
    chunks.map(({ chunk, encoding }) =>
      typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk,
    ),
  );
}

/** Processes: a write to a pipe or socket blocks until it is done, as to a file or terminal. */
export function blockOutput(): void {
  if (process.platform === 'win32') return; // they block there
  for (const [descriptor, stream] of outputs()) {
    if (!isPipe(descriptor)) continue;
    stream._write = (chunk: string | Uint8Array, encoding, done) => {
      try {
        writeAll(descriptor, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
      } catch (error) {
        done(error as Error);
        return;
      }
      done();
    };
    stream._writev = (chunks: readonly Chunk[], done) => {
      stream._write(bytesOf(chunks), 'buffer' as BufferEncoding, done);
    };
  }
}

export function isPipe(descriptor: number): boolean {
  try {
    const about = fstatSync(descriptor);
    return about.isFIFO() || about.isSocket();
  } catch {
    return false; // it is closed
  }
}

/**
 * The descriptor does not block: the processes that have inherited it share that.
 *
 * @throws the error of the system: EAGAIN, if nothing is taken for `patienceMs`
 */
export function writeAll(
  descriptor: number,
  bytes: Uint8Array,
  patienceMs: number = Number.POSITIVE_INFINITY,
): void {
  let rest = bytes;
  let takenAt = performance.now();
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
      takenAt = performance.now();
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN' || performance.now() - takenAt > patienceMs) throw error;
      binding().awaitWritable(descriptor);
    }
  }
}
