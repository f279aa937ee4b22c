// A JavaScript worker that compares files with the same hash, byte by byte.

import { closeSync, openSync, readSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';

/** @typedef {{ size: number, paths: string[] }} Group  files with the same bytes */
/** @typedef {{ groups: Group[], unreadable: string[] }} Result */

const CHUNK = 128 * 1024; // bytes compared between two polls of the stop flag
const buffers = [Buffer.allocUnsafe(CHUNK), Buffer.allocUnsafe(CHUNK)];

// Never undefined, because main.mjs starts this worker with coord.spawn().
const coord = /** @type {Coordinator} */ (Coordinator.current());
/** @type {BoundedQueue<Uint8Array>} */
const hashed = BoundedQueue.attach(workerData.files);
/** @type {BoundedQueue<Result>} */
const results = BoundedQueue.attach(workerData.results);

/** The groups of each hash. More than one only if XXH3 has a collision or a file has changed.
 * @type {Map<string, Group[]>} */
const byHash = new Map();
/** @type {string[]} */
const unreadable = [];

/** Reads until the buffer is full or the file ends.
 * @param {number} file
 * @param {Buffer} buffer */
function fill(file, buffer) {
  let filled = 0;
  while (filled < buffer.length) {
    const read = readSync(file, buffer, filled, buffer.length - filled, null);
    if (read === 0) break;
    filled += read;
  }
  return buffer.subarray(0, filled);
}

/** Whether two files have the same bytes. The answer means nothing once a stop has been requested.
 * @param {string} one
 * @param {string} other */
function areEqual(one, other) {
  const files = [one, other].map((path) => openSync(path, 'r'));
  try {
    while (!coord.shouldStop()) {
      const [a, b] = files.map((file, i) => fill(file, buffers[i]));
      if (!a.equals(b)) return false;
      if (a.length === 0) return true;
    }
    return false;
  } finally {
    for (const file of files) closeSync(file);
  }
}

/** @param {string} hash @param {number} size @param {string} path */
function place(hash, size, path) {
  const groups = byHash.get(hash) ?? [];
  byHash.set(hash, groups);
  const group = groups.find(({ paths: [first] }) => areEqual(first, path));
  if (group === undefined) groups.push({ size, paths: [path] });
  else group.paths.push(path);
}

const decoder = new TextDecoder();
// The loop ends when the C++ threads have closed the queue, or at a stop.
for await (const bytes of hashed) {
  if (coord.shouldStop()) break;
  // The format is described in native/scan.h. The path may contain spaces and any other characters.
  const [, hash, size, text] = /^(\S+) (\d+) (.*)$/s.exec(decoder.decode(bytes)) ?? [];
  try {
    if (hash === '-') unreadable.push(text);
    else place(hash, Number(size), text);
  } catch (error) {
    // Not caught: the error ends this worker, and the coordinator stops all threads.
    if (workerData.strict) throw error;
    unreadable.push(error.message);
  }
}
const groups = [...byHash.values()].flat().filter(({ paths }) => paths.length > 1);
await results.enqueue({ groups, unreadable });
