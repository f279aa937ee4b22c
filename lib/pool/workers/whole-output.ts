/**
 * Has the exit of the process, by `process.exit()` for example, write what its stdout and stderr have
 * not written yet: what workers printed, and what the program did. A full pipe takes the rest of a stream
 * only while the event loop runs. (Files and terminals take all at once, and so do pipes on Windows.)
 */

import type { Writable } from 'node:stream';
import { workerThreads } from '../../base/builtins.ts';
import { attempt } from '../../base/thrown-value.ts';
import { bytesOf, type Chunk, type Done, isPipe, writeAll } from '../worker/output.ts';

type Outlet = Writable & {
  /** What waits until the system has taken what was written before. */
  readonly writableBuffer?: readonly Chunk[];
  readonly _handle?: { readonly writeQueueSize?: number };
  [seen]?: true;
};

/** Other copies of this code, in bundles, see to the same streams. */
const seen = Symbol.for('allstop.wholeOutput');

/** So long the exit waits for a reader that takes nothing. */
const PATIENCE_MS = 5_000;

/** Sees to one of the two streams, once. */
export function writeAllAtExit(descriptor: number): void {
  const stream: Outlet = descriptor === 1 ? process.stdout : process.stderr;
  if (stream[seen] || !workerThreads().isMainThread) return;
  stream[seen] = true;
  if (process.platform === 'win32' || !isPipe(descriptor)) return;
  const { _write, _writev } = stream;
  /** What the stream has given to the system, which may have a part of it still. */
  let given: readonly Chunk[] = [];
  const taken =
    (done: Done): Done =>
    (error) => {
      given = [];
      done(error);
    };
  stream._write = (chunk: Chunk['chunk'], encoding, done) => {
    given = [{ chunk, encoding }];
    Reflect.apply(_write, stream, [chunk, encoding, taken(done)]);
  };
  if (typeof _writev === 'function') {
    stream._writev = (chunks: readonly Chunk[], done) => {
      given = chunks;
      Reflect.apply(_writev, stream, [chunks, taken(done)]);
    };
  }
  process.on('exit', () => {
    const { writableBuffer = [], _handle } = stream;
    const sent = bytesOf(given);
    const left = Math.min(_handle?.writeQueueSize ?? 0, sent.length);
    const rest = Buffer.concat([sent.subarray(sent.length - left), bytesOf(writableBuffer)]);
    attempt(() => writeAll(descriptor, rest, PATIENCE_MS)); // the reader may have gone
  });
}
