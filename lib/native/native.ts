/** The one place that loads the native addon. */

import workerThreads from 'node:worker_threads';
import { type Candidate, candidates, handDown } from './binary/binary.ts';
import { type Attempt, unavailable } from './binary/binary-failure.ts';
import { checkFile, UnfitError } from './binary/binary-file.ts';
import { require } from './binary/package-files.ts';
import type { Addon, NativeBinding } from './binding.ts';

const SLAB_BYTES = 4096;
const FIRST_SLAB_BYTES = 16_384;
const WORDS_PER_SLOT = 16; // a cache line, as in environment.cc

/**
 * The stop words of this thread's first 255 coordinators. An array that is there
 * for good, so that an optimizing compiler takes its address and length for
 * constants: the check is then two loads instead of six. The word at 0 is nobody's
 * and never 0: who has no word here reads that one, and so is led to its own.
 */
export const firstSlab: Int32Array = new Int32Array(new SharedArrayBuffer(FIRST_SLAB_BYTES));
firstSlab[0] = 1;
let firstSlabTaken = false;

function allocateSlab(): Int32Array {
  if (firstSlabTaken) return new Int32Array(new SharedArrayBuffer(SLAB_BYTES));
  firstSlabTaken = true;
  return firstSlab.subarray(WORDS_PER_SLOT);
}

/** The name of this JavaScript thread, for people. */
export function threadName(): string {
  if (workerThreads.isMainThread) return 'main';
  // Node 24.6 and later. Not an import by name: there is none before.
  const given = (workerThreads as { threadName?: string }).threadName;
  return given || `worker-${workerThreads.threadId}`;
}

function loadFile(path: string): Addon {
  checkFile(path);
  const addon = require(path) as Partial<Addon> | null | undefined;
  if (typeof addon?.setup !== 'function') throw new UnfitError('it is not the addon of allstop');
  return addon as Addon;
}

/** The first candidate that loads, and what those before it said. Also for `allstop doctor`. */
export function tryLoad(): { addon?: Addon; from?: Candidate; attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  for (const from of candidates()) {
    const { path, exists } = from;
    if (!exists) continue;
    try {
      return { addon: loadFile(path), from, attempts };
    } catch (error) {
      attempts.push({ path, error });
    }
  }
  return { attempts };
}

function load(): Addon {
  const { addon, from, attempts } = tryLoad();
  if (addon === undefined || from === undefined) throw unavailable(attempts);
  handDown(from);
  return addon;
}

let loaded: NativeBinding | undefined;
let ring: (token?: number) => void = () => {};
let ready: () => void = () => {};

/**
 * What to do when native code rings (with the token of the attachment that has
 * news, or without, if there are several), and once when the addon has been loaded.
 * Registered by doorbell.ts, so that this file imports nothing of ours.
 */
export function onNative(hooks: { ring: (token?: number) => void; ready: () => void }): void {
  ring = hooks.ring;
  ready = hooks.ready;
}

/** The addon, loaded and set up for this thread on first use: nothing happens on import. */
export function binding(): NativeBinding {
  if (loaded !== undefined) return loaded;
  loaded = load().setup({
    threadId: workerThreads.threadId,
    threadName: threadName(),
    isWorker: !workerThreads.isMainThread,
    allocateSlab,
    onRing: ring,
  });
  ready();
  return loaded;
}
