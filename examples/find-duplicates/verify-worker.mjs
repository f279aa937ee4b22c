// A JavaScript worker: compares files that hash alike, byte by byte.

import { closeSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

/** @typedef {{ path: string, size: number, hash: string }} HashedFile */
/** @typedef {{ size: number, paths: string[] }} Group  files with the same bytes */

const CHUNK = 128 * 1024; // between two polls of the stop flag
const buffers = [Buffer.allocUnsafe(CHUNK), Buffer.allocUnsafe(CHUNK)];

// Both are there: main.mjs starts this file with coord.spawn().
const coord = /** @type {Coordinator} */ (Coordinator.current());
const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);

/** Of each hash: several groups only if XXH3 has failed, or a file has changed.
 * @type {Map<string, Group[]>} */
const byHash = new Map();
/** @type {string[]} */
const unreadable = [];

/** Reads on until the buffer is full or the file ends.
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

/** Whether two files have the same bytes; anything, once a stop is requested.
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

/** @param {HashedFile} file */
function place({ path, size, hash }) {
  const groups = byHash.get(hash) ?? [];
  byHash.set(hash, groups);
  const group = groups.find(({ paths: [first] }) => areEqual(first, path));
  if (group === undefined) groups.push({ size, paths: [path] });
  else group.paths.push(path);
}

port.on('message', (message) => {
  if (message === 'no more') {
    const groups = [...byHash.values()].flat().filter(({ paths }) => paths.length > 1);
    port.postMessage({ groups, unreadable });
    port.close();
    return;
  }
  for (const file of message) {
    if (coord.shouldStop()) return;
    try {
      place(file);
    } catch (error) {
      // Uncaught it would end this worker, and the coordinator would stop them all.
      if (workerData.strict) throw error;
      unreadable.push(error.message);
    }
  }
});

// The port keeps this thread alive; after a stop there is nothing to wait for. (An
// event that has happened before one listens does not happen again.)
if (coord.signal.aborted) port.close();
else coord.signal.addEventListener('abort', () => port.close());
